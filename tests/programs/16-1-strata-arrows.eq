-- Follows thesis §16.1.1 (manual stratification): the same division by hand with arrow rules, about the stings that a
-- beekeeper counted around each look into a hive.

STRATUM
  calm(n) <- h: hive(n), w: from-end-backward(h, 1 min), while w: not sting(_);
  counted(n, count(x)) <- h: hive(n), w: from-end-backward(h, 1 min), while w: collect sting(x);
END

STRATUM
  wild(n) <- c: counted(n, k), k > 5;
END

STRATUM
  changed(n) <- a: calm(n), b: wild(n), a before b, {a, b} within 1 day;
END
