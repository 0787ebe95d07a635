-- Follows thesis §7.2.1 (sensor failures): a probe in a greenhouse has fallen silent, either because readings stop or
-- because its heartbeat does. The window leaves out its own begin, where the last reading lies; and the negated
-- patterns are partial, for signals have more parts than they name.

DETECT
  silent {
    probe-type { "moisture" },
    var S,
    var A,
    last-moisture { var T }
  }
ON
  and {
    event t: moisture-signal {
      var S -> probe {{ }},
      var A -> beds {{ }},
      moisture { var T }
    },
    event w: timer:extend[event t, 25 sec],
    while(excl,incl) w: not moisture-signal {{ var S }}
  }
END

DETECT
  silent {
    probe-type { "leak" },
    var S,
    var A
  }
ON
  and {
    event t: leak-signal {
      var S -> probe {{ }},
      var A -> beds {{ }},
      heartbeat {{ }}
    },
    event w: timer:extend[event t, 130 sec],
    while(excl,incl) w: not leak-signal {{
      var S,
      heartbeat {{ }}
    }}
  }
END
