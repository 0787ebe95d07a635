-- q5, hot items: every two seconds, which auctions had the most bids in the last ten.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

bids(auction, count(*)) <-
    t: timer:datetime(second: s),
    s mod 2 = 0,
    w: from-end-backward(t, 10s),
    while(incl,excl) w: collect bid(auction, _, _, _, _, _);

hot(auction, n) <- b: bids(auction, n), while b: not bids(_, m) where { m > n };
