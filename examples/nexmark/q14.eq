-- q14, calculation: bids of some size in euros, and whether it was day. The original counts a letter in `extra` by a
-- function of its own, which is not there.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

calculated(auction, bidder, price * 0.908, "day", extra) <-
    b: bid(auction, bidder, price, _, _, extra),
    price * 0.908 > 1000000,
    price * 0.908 < 50000000,
    (begin(b) - datetime("1970-01-01T00:00Z")) mod 86400 >= 28800,
    (begin(b) - datetime("1970-01-01T00:00Z")) mod 86400 < 68400;
calculated(auction, bidder, price * 0.908, "night", extra) <-
    b: bid(auction, bidder, price, _, _, extra),
    price * 0.908 > 1000000,
    price * 0.908 < 50000000,
    (begin(b) - datetime("1970-01-01T00:00Z")) mod 86400 < 25200
      or (begin(b) - datetime("1970-01-01T00:00Z")) mod 86400 >= 72000;
calculated(auction, bidder, price * 0.908, "other", extra) <-
    b: bid(auction, bidder, price, _, _, extra),
    price * 0.908 > 1000000,
    price * 0.908 < 50000000,
    (begin(b) - datetime("1970-01-01T00:00Z")) mod 86400 >= 25200
        and (begin(b) - datetime("1970-01-01T00:00Z")) mod 86400 < 28800
      or (begin(b) - datetime("1970-01-01T00:00Z")) mod 86400 >= 68400
        and (begin(b) - datetime("1970-01-01T00:00Z")) mod 86400 < 72000;
