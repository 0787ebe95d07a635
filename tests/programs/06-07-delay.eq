-- Follows thesis §6.7 (relative timers, first example): reports a parcel once more when it has been in its locker
-- for two hours.

DETECT
  still-there {
    var P
  }
ON
  and {
    event d: dropped {{
      parcel { var P }
    }},
    event t: datetime:extend[event d, 2 hours]
  }
END

-- the timer needs no name when nothing speaks of it
DETECT
  next-morning { var P }
ON
  and {
    event d: dropped {{ parcel { var P } }},
    timer:shift-forward[event d, 12 hours]
  }
END
