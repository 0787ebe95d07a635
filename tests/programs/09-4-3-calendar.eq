-- Follows thesis §9.4.3 (the calendar as events): the first instant of the computer clock, named by all its fields at
-- once. (It is a Thursday.)

DETECT
  epoch { }
ON
  event i: timer:datetime {
    year { 1970 }, month { "January" }, day-of-month { 1 },
    hour-of-day { 0 }, minute { 0 }, second { 0 }, millisecond { 0 },
    week-of-year { 1 }, week-of-month { 1 }, day-of-year { 1 },
    day-of-week { "Thursday" }, day-of-week-in-month { 1 },
    am-pm { "am" }, hour { 0 },
    zone-offset { 0 }, dst-offset { 0 },
    date { "1970-01-01" }, time { "00:00" },
  }
END
