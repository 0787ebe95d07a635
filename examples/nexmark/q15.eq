-- q15, bidding statistics: for every day how many bids there were, how many bidders and how many auctions, of all prices,
-- and of low, middle and high ones.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

statistics("all", count(*), count(bidder), count(auction)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, bidder, _, _, _, _);
statistics("low", count(*), count(bidder), count(auction)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, bidder, price, _, _, _) where { price < 10000 };
statistics("middle", count(*), count(bidder), count(auction)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, bidder, price, _, _, _) where {
      price >= 10000,
      price < 1000000
    };
statistics("high", count(*), count(bidder), count(auction)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    while(incl,excl) w: collect bid(auction, bidder, price, _, _, _) where { price >= 1000000 };
