-- q16, channel statistics: for every day and channel how many bids there were, how many bidders and how many auctions, of all prices,
-- and of low, middle and high ones.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

statistics(channel, "all", count(*), count(bidder), count(auction)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, bidder, _, channel, _, _);
statistics(channel, "low", count(*), count(bidder), count(auction)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, bidder, price, channel, _, _) where { price < 10000 };
statistics(channel, "middle", count(*), count(bidder), count(auction)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, bidder, price, channel, _, _) where {
      price >= 10000,
      price < 1000000
    };
statistics(channel, "high", count(*), count(bidder), count(auction)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, bidder, price, channel, _, _) where {
      price >= 1000000
    };
