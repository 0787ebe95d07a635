EVENT order(id: int);
EVENT mail(id: int, kind: string, size: int);

silent(id) <- o: order(id), w: extend(o, 1 hour), while w: not mail(id, k, size) where { size > 100, k != "spam" };
thread(id, count(*)) <- o: order(id), v: extend(o, 2 hours), while v: collect mail(id, k, n) where { n > 100 };
