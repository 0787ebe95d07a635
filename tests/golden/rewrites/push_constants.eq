-- emit: hot, cold
EVENT reading(sensor: string, kind: string, value: int);
EVENT probe(sensor: string, value: int);
EVENT door(sensor: string);

measured(s, k, v) <- r: reading(s, k, v);
measured(s, "temperature", v) <- p: probe(s, v);
measured(s, "opened", 1) <- d: door(s);
hot(s) <- m: measured(s, "temperature", v), n: measured(s, "temperature", u), m before n, {m, n} within 1 min, v > 30, u > 30;
cold(s) <- d: door(s), w: extend(d, 1 min), while w: collect measured(s, "temperature", v) where { v < 0 };
