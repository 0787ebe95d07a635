-- Follows docs/language.md, the functions of the language and those that people wrote (thesis 18.3.1).
TIME ZONE "Europe/Berlin";
EVENT seen(ship: string, at: time, x: float, y: float);
FUNCTION hypot(float, float): float FROM "math:hypot";
jump(round(hypot(c - a, d - b), 1), format(q, "d MMM HH:mm")) <-
    i: seen(s, p, a, b),
    j: seen(s, q, c, d),
    i before j,
    {i, j} within 10m,
    hypot(c - a, d - b) > 20,
    s not in ("buoy", "pier");
texts(
  upper(s),
  lower(s),
  trim(s),
  length(s),
  substring(s, 2, 3),
  replace(s, "a", "b"),
  part(s, "-", 1),
  extract(s, "[0-9]+"),
  concat(s, text(x)),
  coalesce(number(s), 0)
) <-
    i: seen(s, t, x, y),
    contains(s, "a") = true,
    starts-with(s, "b") = true,
    ends-with(s, "c") = false,
    matches(s, "[a-z]+-[0-9]+") = true;
numbers(
  abs(x),
  floor(x),
  ceil(x),
  power(x, 2),
  sqrt(abs(x)),
  exp(x),
  ln(y),
  least(x, y),
  greatest(x, y)
) <-
    i: seen(s, t, x, y);
times(year(t), month(t), day(t), hour(t), minute(t), second(t), weekday(t), week(t)) <-
    i: seen(s, t, x, y),
    time("2026-03-01") < t;
