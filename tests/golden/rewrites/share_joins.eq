EVENT order(id: int, cents: int) RATE 10 per sec;
EVENT paid(id: int, cents: int) RATE 10 per sec;
EVENT shipped(id: int);

unsent(id) <- o: order(id, due), p: paid(id, cents), {o, p} within 1 hour, cents >= due, w: extend(p, 1 min), while w: not shipped(id);
late(k) <- b: order(k, price), c: paid(k, given), {b, c} within 1 hour, given >= price, v: extend(c, 2 min), while v: not shipped(k);
