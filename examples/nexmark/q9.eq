-- q9, winning bids: for each auction the highest bid while it was open, and of equal ones the first.

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

final(id, max(price)) <- a: auction(id, _, _, _, _, _), while a: collect bid(id, _, price, _, _, _);

winning(id, item, seller, category, bidder, price, extra) <-
    f: final(id, price),
    a: auction(id, item, _, _, seller, category),
    b: bid(id, bidder, price, _, _, extra),
    f equals a,
    b during[0s, *, 0s, *] a,
    while a: not e: bid(id, _, price, _, _, _) where { e before b };
