EVENT order(id: int, item: string, cents: int, note: string);
EVENT paid(id: int, by: string);
EVENT visit(id: int, page: string);
EVENT returned(id: int, why: string);

bought(id, item) <- o: order(id, item, cents, _), p: paid(id, _), {o, p} within 1 day, cents > 0;
complaints(id, count(*)) <- v: visit(id, _), w: extend(v, 1 day), while w: collect returned(id, why);
