-- Follows thesis §7.1.4 (diagnostics): whenever a request waits too long, how many parcels were packed in the day
-- before.

DETECT
  waiting { var I }
ON
  and {
    event o: request {{ nr { var I } }},
    event w: timer:extend[event o, 5 hours],
    while w: not packed {{ request-nr { var I } }}
  }
END

DETECT
  packing-load { count(all var S) }
ON
  and {
    event o: waiting {{ }},
    event w: timer:from-end-backward[event o, 24 hours],
    while w: collect var S -> packed {{ }}
  }
END
