-- Follows thesis §6.8 (fixed times in conditions): early registrations for a race, once as they come and once all
-- together when registration closes.

TIME ZONE "Europe/Vienna";

-- a time that only restricts
DETECT
  early { var N }
ON
  event s: registered {{ runner { var N } }}
  where {
    s before datetime(
      "2026-11-02T07:30")
  }
END

-- the same time as an event, which is waited for
DETECT
  starter { var N }
ON
  and {
    event s: registered {{ runner { var N } }},
    event t: timer:datetime {{
      date { "2026-11-02" },
      time { "7:30" }
    }}
  } where { s before t }
END

-- with a zone, and on the left
DETECT
  after-noon { var N }
ON
  event s: registered {{ runner { var N } }}
  where { datetime("2026-11-02T12:00:00+01:00") before s, s before datetime("2026-11-02T17:00Z") }
END
