-- Follows docs/grammar.md (words): names in backquotes and with hyphens, texts with escapes, and
-- numbers, in a lost property office.

/* A comment of this kind
   may run over several lines -- and hold the other kind. */

`lost and found`(x, `shelf no`) <- o: `found item`(x, `shelf no`), `shelf no` > 0, x != "\"all\" of\tit, caf\u00e9 \\ \/";

-- numbers and durations
measured(x, 4200, 2.75, 1e6, 2.5e-3, -0) <- m: measure(x, -3, 0.25, 1E2), {m} within 1w2d3h4m5s6ms7us,
  x > -7.5 /* a minus needs spaces: a-b is a name */, x - 1 < 10, x-1 = 2, n: minus(x-1), {m, n} within 1.5h;

/* commas may be left out */ DETECT item { kind { var K } place { var P } } ON and {
  event a: found {{ kind { var K } damp { false } degrees { -4 } }} event b: shelved {{ kind { var K } place { var P } }}
} where { a before b {a b} within 3 days } END
