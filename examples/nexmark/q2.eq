-- q2, selection: the bids on some auctions.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

selected(auction, price) <- b: bid(auction, _, price, _, _, _), auction mod 123 = 0;
