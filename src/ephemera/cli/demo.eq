-- One day of a shop that sends fresh food, and of the cold rooms of its warehouse.

EVENT order(id: string, room: string, qty: int);
EVENT sent(id: string, parcel: string);
EVENT delivered(parcel: string);
EVENT temperature(room: string, celsius: float);
EVENT door(room: string) LASTS AT MOST 1 hour;  -- from when it opens until it closes

-- A join: ordered, sent and delivered, in this order and within twelve hours.
completed(id) <-
    o: order(id, _, _),
    s: sent(id, parcel),
    d: delivered(parcel),
    o before s,
    s before d,
    {o, d} within 12h;

-- An absence: four hours after an order, nothing had been sent.
overdue(id, room) <- o: order(id, room, _), w: extend(o, 4h), while w: not sent(id, _);

-- A silence: five minutes after a reading, the sensor of the room had not been heard again.
silent(room) <-
    t: temperature(room, _),
    w: extend(t, 5m),
    while(excl,incl) w: not temperature(room, _);

-- A window: the mean of the last quarter of an hour was above seven degrees.
warm(room, avg(c)) <-
    t: temperature(room, now),
    w: from-end-backward(t, 15m),
    while w: collect temperature(room, c),
    now > 7.0,
    having { avg(c) > 7.0 };

-- Intervals: the door was open, and inside of that time the room was found warm.
open-door(room, duration(d)) <- d: door(room), t: temperature(room, c), t during d, c > 7.0;

-- Rules build on rules: overdue orders, and how often their room was found warm while they waited.
spoilt(id, room, count(m)) <- o: overdue(id, room), while o: collect warm(room, m);
