-- An online shop: orders, shipping and delivery. Which orders are completed, which are overdue, and how busy was
-- the shipping department when one was?

TIME UNIT 1 hour;

EVENT order(id: string, product: string, qty: int) RATE 200 per sec;
EVENT shipped(id: string, tracking: string);
EVENT delivered(tracking: string);

STREAM shop FROM "orders/*.jsonl" FORMAT json
  CARRIES order, shipped, delivered
  WATERMARK 10 min IDLE 1 min;

-- Ordered, shipped and delivered, in this order and within two days.
completed(id, product) <-
    o: order(id, product, _),
    s: shipped(id, tracking),
    d: delivered(tracking),
    o before s,
    s before d,
    {o, d} within 48h;

-- A small order that is not shipped within six hours, a large one within a day.
overdue(id) <- o: order(id, _, qty), w: extend(o, 6h), while w: not shipped(id, _), qty < 10;
overdue(id) <- o: order(id, _, qty), w: extend(o, 24h), while w: not shipped(id, _), qty >= 10;

-- How many parcels left in the day before an order became overdue.
load(id, count(other)) <-
    o: overdue(id),
    w: from-end-backward(o, 24h),
    while w: collect optional shipped(other, _);

-- Overdue although five parcels or more left in that day: a message to the people in charge.
RAISE
  to(recipient="shipping@example.org", transport="console") {
    overload { order { var I }, parcels { var N } }
  }
ON
  event l: load [ var I, var N ] where { var N >= 5 }
END
