-- Follows thesis §6.7 (timers on timers): quiet time around a visit, an hour before it begins and an hour after it
-- ends, by way of a helping timer.

DETECT
  quiet { var R }
ON
  and {
    event v: visit {{ room { var R } }}
    event h: timer:extend[v, 1 hour]
    event t: timer:extend-begin[h, 1 hour]
  }
END

-- three timers in a row; they may stand in any order
DETECT
  follow-up { var R }
ON
  and {
    event c: timer:shorten-begin[event b, 30 min],
    event b: timer:from-end[event a, 2 days],
    event a: timer:shift-forward[event v, 1 week],
    event v: visit {{ room { var R } }}
  }
END
