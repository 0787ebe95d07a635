-- Follows thesis §6.11 (heads and conditions in arrow form): what a garage can compute and ask of
-- the stays, passes and remarks it receives.

TIME UNIT 1 min;

EVENT stay(plate: string, bay: int, rate: float) LASTS AT MOST 2 days;
EVENT pass(plate: string, days: int);
EVENT move(plate: string, from-bay: int, to-bay: int);
EVENT note(plate: string, text: string, level: int);

-- expressions in heads: arithmetic, functions, times of events
bill(p, r * 2 + 0.5, -r, (r + 1) * b / 2, b mod 10, b div 3, begin(s), end(s), duration(s)) <-
  s: stay(p, b, r), duration(s) > 30 min;
label(concat(p, "/", t), add(l, 1), subtract(l, 1), mult(l, 2), div(l, 2), mod(l, 2), 7, "new", true, null) <-
  n: note(p, t, l);

-- conditions joined by and, or, not
odd(p) <- s: stay(p, b, r), (r > 3 or b < 10) and not r = 4.5, b mod 2 = 1;
even(p) <- s: stay(p, b, r), not (b mod 2 = 1), r >= 1.25 and r <= 1e3 or b = 0;
close(p, q) <- s: stay(p, b, _), t: stay(q, b, _), s before t or s meets t, not s overlaps t, {s, t} within 1d;

-- the same value twice, other values, other events
round(p) <- m: move(p, b, b);
swap(p, q) <- m: move(p, a, b), n: move(q, b, a), p != q, {m, n} within 30;
again(p) <- s: stay(p, b, _), t: stay(p, c, _), s != t, b = c, begin(s) < begin(t), {s, t} within 2d;

-- named atoms: the rest is free, and may be missing
silent(p) <- n: note(plate: p, text: t), t is null;
loud(p, t) <- n: note(text: t, plate: p, level: 3), t is not null;
front(p) <- s: stay(plate: p, bay: 1, rate: _);
below(p) <- s: stay(p, -1, _);
cellar(p) <- s: stay(p, b, _), b < -1;

-- atoms without an identifier; the words `var` and `event` may be written here too
known(p) <- stay(p, _, _), pass(p, d), d > 0;
known-too(var p) <- event s: stay(var p, _, _), event q: pass(var p, var d), var d > 0, {s, q} within 7d;

-- aggregation: over a collection and over the answer's own bindings
day(b, count(p), sum(r * 2), max(r) - min(r), avg(r), count(*)) <-
  c: pass("caretaker", 1), w: from-end-backward(c, 24h), while w: collect stay(p, b, r);
