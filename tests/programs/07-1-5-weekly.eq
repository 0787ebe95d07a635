-- Follows thesis §7.1.5 (weekly report): for each week the requests and copies of every title.

TIME ZONE "Europe/Rome";

DETECT
  week [ var W, var Y ]
ON
  and {
    event b: timer:datetime {{
      year { var Y },
      week-of-year { var W },
      day-of-week { "Monday" },
      time { "0:00" }
    }}
    event e: timer:datetime {{
      day-of-week { "Sunday" },
      time { "23:59" }
    }}
  }
  where { b before e, {b,e} within 1 week }
END

DETECT
  weekly-report {
    var W,

    all book {
      var P,
      requests { count(all var I) },
      copies { sum(all var Q) }
    } group by { var P }
  }
ON
  and {
    event w: var W -> week {{ }},
    while w: collect request {{
      nr { var I },
      var P -> title {{ }},
      copies { var Q }
    }}
  }
END
