-- q4, average price for a category: whenever an auction closes, the average closing price of those of its category that
-- were opened and closed in the ten minutes before. An auction lasts from when it is opened until it expires.

EVENT auction(
  id: int,
  item: string,
  initial: int,
  reserve: int,
  seller: int,
  category: int
) LASTS AT MOST 10 min ARRIVES AT BEGIN;
EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);
STREAM auctions CARRIES auction TIME time, expires;

final(id, category, max(price)) <-
    a: auction(id, _, _, _, _, category),
    while a: collect bid(id, _, price, _, _, _);

average(category, avg(price)) <-
    f: final(_, category, _),
    w: from-end-backward(f, 10m),
    while w: collect final(_, category, price);
