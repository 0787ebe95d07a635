EVENT order(id: string);
EVENT shipped(id: string);
EVENT visit(id: string) LASTS AT MOST 1 hour;
STREAM shop CARRIES order, visit WATERMARK 10 min IDLE 1 min;
STREAM store CARRIES shipped;

placed(id) <- o: order(id);
taken(id) <- s: shipped(id);
reminder(id) <- o: order(id), w: extend(o, 6h);
overdue(id) <- o: order(id), w: extend(o, 6h), while w: not shipped(id);
second(id) <- r: reminder(id), w: extend(r, 1h);
parcels(id, count(*)) <- o: order(id), w: extend(o, 2h), while w: collect shipped(id);
before(id, count(*)) <- o: order(id), w: from-end-backward(o, 2h), while w: collect shipped(id);
sent(id) <- o: order(id), s: shipped(id), o before s, {o, s} within 1 day;
