-- Rules that differ in how long their timers last run as one; windows of each are as long as its own.
EVENT order(id: int, shop: int);
EVENT paid(id: int);

slow-a(i) <- o: order(i, 1), w: extend(o, 5 min), while w: not paid(i);
slow-b(i) <- o: order(i, 2), w: extend(o, 6 min), while w: not paid(i);
slow-c(i) <- o: order(i, 3), w: extend(o, 7 min), while w: not paid(i);
slow-d(i) <- o: order(i, 4), w: extend(o, 8 min), while w: not paid(i);
