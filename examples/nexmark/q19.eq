-- q19, top ten bids: for every day and auction the ten highest bids, with how many are higher.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

top(auction, bidder, price, extra, count(*)) <-
    t: timer:datetime(time: "0:00"),
    w: from-end-backward(t, 1d),
    b: bid(auction, bidder, price, _, _, extra),
    b during[0s, *, 1us, *] w,
    while(incl,excl) w: collect optional bid(auction, _, higher, _, _, _) where { higher > price },
    having { count(*) < 10 };
