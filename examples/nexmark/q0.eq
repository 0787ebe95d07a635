-- q0, pass through: every bid as it is.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

passed(auction, bidder, price, extra) <- b: bid(auction, bidder, price, _, _, extra);
