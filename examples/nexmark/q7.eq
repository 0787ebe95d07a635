-- q7, highest bid: in every ten seconds, the bids with the highest price.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

highest(max(price)) <-
    t: timer:datetime(second: s),
    s mod 10 = 0,
    w: from-end-backward(t, 10s),
    while(incl,excl) w: collect bid(_, _, price, _, _, _);

top(auction, price, bidder, extra) <-
    h: highest(price),
    b: bid(auction, bidder, price, _, _, extra),
    b during[0s, *, 1us, *] h;
