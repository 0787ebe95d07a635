-- Follows thesis §7.2.4 (alarm fatigue): a flooded bed is reported only if it has not been reported in the half hour
-- before; first with a window that ends a second early, then with one that leaves out its end.

DETECT
  flood-candidate {
    bed { var A }
  }
ON
  and {
    event t1: moisture-mean {{ probe { var S1 }, beds {{ bed { var A } }}, mean { var T1 } }},
    event t2: moisture-mean {{ probe { var S2 }, beds {{ bed { var A } }}, mean { var T2 } }},
    event s: leak-alarm {{ beds {{ bed { var A } }} }}
  }
  where { var T1 > 85, var T2 > 85,
          var S1 != var S2,
          {t1,t2,s} within 150 seconds }
END

DETECT
  flooded {
    bed { var A }
  }
ON
  and {
    event c: flood-candidate {
      bed { var A }
    },
    event h: timer:shift-backward[
      event c, 1 sec ],
    event w: timer:extend-backward[
      event h, 30 min ],
    while w: not flood-candidate {
      bed { var A }
    }
  }
END

-- §18.2.4 does away with the helping timer
DETECT
  newly-flooded {
    bed { var A }
  }
ON
  and {
    event c: flood-candidate {
      bed { var A }
    },
    event w: timer:extend-backward[event c, 30 min],
    while(incl,excl) w: not flood-candidate {
      bed { var A }
    }
  }
END
