-- q14, calculation: bids of some size in euros, whether it was day, and how often there is a 1 in `extra`.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

large(
  auction,
  bidder,
  price * 0.908,
  hour(begin(b)),
  extra,
  length(extra) - length(replace(extra, "1", ""))
) <-
    b: bid(auction, bidder, price, _, _, extra),
    price * 0.908 > 1000000,
    price * 0.908 < 50000000;

calculated(auction, bidder, euros, "day", extra, ones) <-
    l: large(auction, bidder, euros, h, extra, ones),
    h >= 8,
    h <= 18;
calculated(auction, bidder, euros, "night", extra, ones) <-
    l: large(auction, bidder, euros, h, extra, ones),
    h <= 6 or h >= 20;
calculated(auction, bidder, euros, "other", extra, ones) <-
    l: large(auction, bidder, euros, h, extra, ones),
    h in (7, 19);
