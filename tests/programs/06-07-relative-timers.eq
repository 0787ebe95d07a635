-- Follows thesis §6.7 (built-in relative timers): every way in which a timer can be laid around a visit to a
-- clinic.

EVENT visit(patient: string) LASTS AT MOST 6 hours;

DETECT t1 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:extend[event v, 20 minutes]
} END

DETECT t2 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:shorten[event v, 1 minute]
} END

DETECT t3 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:extend-begin[event v, 1 hour]
} END

DETECT t4 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:shorten-begin[event v, 45 seconds]
} END

DETECT t5 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:shift-forward[event v, 1 week]
} END

DETECT t6 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:shift-backward[event v, 1 day]
} END

DETECT t7 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:from-end[event v, 2 weeks 3 days 5 hours 12 min 40 sec 125 ms]
} END

DETECT t8 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:from-end-backward[event v, 500 milliseconds]
} END

DETECT t9 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:from-start[event v, 1 week 1 day 1 hour 1 minute 1 second 1 millisecond 1 microsecond]
} END

DETECT t10 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:from-start-backward[event v, 2w3d5h12m40s125ms]
} END

-- a second name of extend-begin
DETECT t11 { var P } ON and {
  event v: visit {{ patient { var P } }},
  event t: timer:extend-backward[event v, 250 microseconds]
} END
