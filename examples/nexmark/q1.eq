-- q1, currency conversion: every bid in euros.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

in-euros(auction, bidder, price * 0.908, extra) <- b: bid(auction, bidder, price, _, _, extra);
