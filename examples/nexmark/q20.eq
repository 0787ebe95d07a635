-- q20, expand bid with auction: the bids on open auctions of category 10, with what is offered.

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

expanded(id, item, seller, bidder, price, channel, extra) <-
    a: auction(id, item, _, _, seller, 10),
    b: bid(id, bidder, price, channel, _, extra),
    b during[0s, *, 0s, *] a;
