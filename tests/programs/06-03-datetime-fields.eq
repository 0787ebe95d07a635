-- Follows thesis fig. 6.2 (the fields of a built-in timer): bells of a school, each rung by other fields of the
-- clock.

TIME ZONE "Europe/Berlin";

-- every field at once: 20 October 2026, 19:20 in summer time
DETECT
  concert { }
ON
  event i: timer:datetime {{
    year { 2026 },
    month { "October" },
    day-of-month { 20 },
    hour-of-day { 19 },
    minute { 20 },
    second { 0 },
    millisecond { 0 },

    week-of-year { 43 },
    week-of-month { 4 },
    day-of-year { 293 },
    day-of-week { "Tuesday" },
    day-of-week-in-month { 3 },
    am-pm { "pm" },
    hour { 7 },
    zone-offset { 1 },
    dst-offset { 1 },

    date { "2026-10-20" },
    time { "19:20" },
  }}
END

-- the first instant of every year, and its number
DETECT new-year { var Y } ON event i: timer:datetime {{ year { var Y }, day-of-year { 1 } }} END

-- the first of every month
DETECT dues { var M } ON event i: timer:datetime {{ month { var M }, day-of-month { 1 } }} END

-- Monday of the first week of a month
DETECT fire-drill { } ON event i: timer:datetime {{ week-of-month { 1 }, day-of-week { "Monday" } }} END

-- Monday of every week, with its number
DETECT timetable { var W } ON event i: timer:datetime {{ week-of-year { var W }, day-of-week { "Monday" } }} END

-- a quarter past every hour
DETECT chime { var H } ON event i: timer:datetime {{ hour-of-day { var H }, minute { 15 } }} END

-- eleven in the morning and eleven at night
DETECT watch { var A } ON event i: timer:datetime {{ am-pm { var A }, hour { 11 } }} END

-- half past every minute
DETECT tick { } ON event i: timer:datetime {{ second { 30 }, millisecond { 0 } }} END

-- a quarter to three in summer time only
DETECT summer-break { } ON event i: timer:datetime {{ time { "14:45" }, zone-offset { 1 }, dst-offset { 1 } }} END

-- every fifth Thursday of a month
DETECT staff-meeting { var D }
ON event i: timer:datetime {{ day-of-week { "Thursday" }, day-of-week-in-month { 5 }, date { var D } }} END
