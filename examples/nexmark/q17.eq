-- q17, auction statistics: for every day and auction how many bids there were, how many of them low, middle and high, the
-- lowest and the highest price, the average and the sum. No two bids have the same `extra`, so it tells them apart.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

day(auction, count(*), min(price), max(price), avg(price), sum(price)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, _, price, _, _, _);

statistics(auction, bids, count(l), count(m), count(h), least, most, mean, total) <-
    d: day(auction, bids, least, most, mean, total),
    while(incl,excl) d: collect optional bid(auction, _, low, _, _, l) where { low < 10000 },
    while(incl,excl) d: collect optional bid(auction, _, mid, _, _, m) where {
      mid >= 10000,
      mid < 1000000
    },
    while(incl,excl) d: collect optional bid(auction, _, high, _, _, h) where { high >= 1000000 };
