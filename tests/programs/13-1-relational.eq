-- Follows thesis §13.1 (three rules in relational form): a laundry's order is finished, waits too long for its wash,
-- and how many washes had begun in the day before.

TIME UNIT 1 hour;

finished(no, k) <- o: taken(no, k, n), s: washed(no, b), d: ironed(b),
  o before s, s before d, {o, s, d} within 36;

waiting(no) <- o: taken(no, k, n), w: extend(o, 8h),
  while w: not washed(no, b), n < 20;

load(count(no)) <- o: waiting(late), w: from-end-backward(o, 24h),
  while w: collect washed(no, b);
