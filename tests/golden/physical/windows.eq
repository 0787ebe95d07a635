EVENT order(id: string, qty: int);
EVENT paid(id: string, cents: int);
EVENT mail(id: string, stars: int);
EVENT call(id: string, stars: int);

unpaid(id) <- o: order(id, _), w: extend(o, 6h), while w: not paid(id, c) where { c > 0 };
income(id, sum(c)) <- o: order(id, _), w: extend(o, 6h), while w: collect paid(id, c) where { c > 0, c < 100000 };
loved(id, count(*)) <- o: order(id, q), w: extend(o, 6h), while w: collect mail(id, s) where { s = 5 };
disliked(id) <- o: order(id, q), w: extend(o, 6h), while w: collect call(id, s) where { s < 2 or s = 2 }, q > 3;
