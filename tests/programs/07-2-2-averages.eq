-- Follows thesis §7.2.2 (cleaning by averages): the mean moisture that each probe of a greenhouse reported in each
-- minute of the clock, one event for every probe.

DETECT
  all moisture-mean {
    var S,
    var A,
    mean { avg(all var T) }
  } group by { var S }
ON
  and {
    event m: timer:datetime {{
      second { 0 },
      millisecond { 0 }
    }},
    event w: extend[event m, 1 min],
    while w: collect moisture-signal {
      var S -> probe {{ }},
      var A -> beds {{ }},
      moisture { var T }
    }
  }
END
