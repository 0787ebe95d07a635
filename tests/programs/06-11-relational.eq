-- Follows thesis §6.11 (the relational variant): the short stays and no-shows of the sections before as arrow
-- rules, and counts of what happened just before. `o` and `t` are both a variable and an event here.

cheap(c, o) <- i: entered(n1, k1, c, o, p1, v1), o: left(n2, k2, c, o, p2, v2),
  i before o, {i,o} within 20m, p1 > p2;

no-show(i) <- r: reserved(i, c1, s1, l, v1), t: extend(r, 1h), while t: not seated(i, t, c2, s2, p, v2);

report(count(i)) <- o: no-show(i1), t: extend-begin(o, 1h),
  while t: collect reserved(i, c, s, l, v);

report-per-room(count(i), s) <- o: no-show(i1), t: extend-begin(o, 1h),
  while t: collect reserved(i, c, s, l, v);

-- the other aggregation functions
guests(min(v), max(v), sum(v), avg(v), count(*)) <- o: no-show(i1), t: extend-begin(o, 1h),
  while t: collect reserved(i, c, s, l, v);
