-- Follows thesis §12.1.2 (input and output): a bell is answered, or it is not answered in time. Bare numbers count
-- seconds.

answered(x) <- i: rung(x), j: opened(x), {i, j} within 9;
ignored(x) <- i: rung(x), k: extend(i, 4), while k: not opened(x);
