-- q7, highest bid: in every ten seconds, the bids with the highest price.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

highest(max(price)) <- w: every 10s, while w: collect bid(_, _, price, _, _, _);

top(auction, price, bidder, extra) <-
    h: highest(price),
    b: bid(auction, bidder, price, _, _, extra),
    b during[0s, *, 0s, *] h;
