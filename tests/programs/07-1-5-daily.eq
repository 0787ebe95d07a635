-- Follows thesis §7.1.5 (daily report): counts a library's requests and arrivals for each day, a day being made of
-- two absolute timers.

TIME ZONE "Europe/Rome";

DETECT
  day [ var WD, var D ]
ON
  and {
    event b: timer:datetime {{
      day-of-week { var WD },
      date { var D },
      time { "0:00" }
    }},
    event e: timer:datetime {{
      time { "23:59" }
    }}
  }
  where { b before e, {b,e} within 1 day }
END

DETECT
  daily-report {
    var D,
    requests { count(all var O) },
    ready { count(all var C) }
  }
ON
  and {
    event w: var D -> day [[ ]],
    while w: collect request {{
      nr { var O }
    }},
    while w: collect ready {{
      nr { var C }
    }}
  }
END

-- a day by one absolute timer and one relative timer
DETECT
  whole-day [ var D ]
ON
  and {
    event b: timer:datetime {{ date { var D } }},
    event e: timer:extend[event b, 1 day]
  }
END
