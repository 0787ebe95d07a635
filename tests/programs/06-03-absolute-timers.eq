-- Follows thesis §6.3 (absolute timer events): the clock of a lighthouse museum, once, daily, on the days of its
-- own calendar, and monthly. (`data` in the thesis is `date`.)

TIME ZONE "Europe/Lisbon";
NAMESPACE cal = "urn:example:museum";

-- once
DETECT
  lamps-on { }
ON
  event i: timer:datetime {{
    time { "18:20" },
    date { "2026-12-05" }
  }}
END

-- every day, with the day's date
DETECT
  closing-soon { day { var D } }
ON
  event i: timer:datetime {{
    time { "17:30" },
    date { var D }
  }}
END

-- on the days of an external calendar, which its namespace names
DETECT
  guided-tour { weekday { var D } }
ON
  cal:opening-day {{
    weekday { var D }
  }}
END

-- every third Friday of a month; "7:45" is the same as "07:45"
DETECT
  lens-cleaning { }
ON
  event i: timer:datetime {{
    day-of-week { "Friday" },
    day-of-week-in-month { 3 },
    time { "7:45" }
  }}
END
