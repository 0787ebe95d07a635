-- Follows thesis §7.2.2 (cleaning by counting): a leak probe is believed only if it had signalled water several times
-- a while before.

DETECT
  leak-counter [
    var S,
    var A,
    signals { count(all var C) }
  ]
ON
  and {
    event s: leak-signal {{
      var S -> probe {{ }},
      var A -> beds {{ }},
      water {{ }}
    }},
    event h: timer:shift-backward[event s, 15 sec],
    event w: timer:extend-begin[event h, 20 sec],
    while w: collect var C -> leak-signal {{
      var S,
      water {{ }}
    }}
  }
END

DETECT
  leak-alarm {
    var S,
    var A
  }
ON
  leak-counter [
    var S,
    var A,
    signals { var C }
  ]
  where { var C >= 4 }
END
