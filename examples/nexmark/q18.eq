-- q18, find last bid: for every day the last bid of each bidder on each auction.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

last(auction, bidder, price, extra) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    b: bid(auction, bidder, price, _, _, extra),
    b during[0s, *, 1us, *] w,
    while(incl,excl) w: not c: bid(auction, bidder, _, _, _, _) where { c after b };
