-- q16, channel statistics: for every day and channel how many bids, bidders and auctions there were, of all
-- prices, and of low, middle and high ones, and the time of the last.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

statistics(channel, "all", count(*), count(bidder), count(auction), format(max(end(b)), "HH:mm")) <-
    w: every 1d,
    while w: collect b: bid(auction, bidder, _, channel, _, _);
statistics(channel, "low", count(*), count(bidder), count(auction), format(max(end(b)), "HH:mm")) <-
    w: every 1d,
    while w: collect b: bid(auction, bidder, price, channel, _, _) where { price < 10000 };
statistics(
  channel,
  "middle",
  count(*),
  count(bidder),
  count(auction),
  format(max(end(b)), "HH:mm")
) <-
    w: every 1d,
    while w: collect b: bid(auction, bidder, price, channel, _, _) where {
      price >= 10000,
      price < 1000000
    };
statistics(
  channel,
  "high",
  count(*),
  count(bidder),
  count(auction),
  format(max(end(b)), "HH:mm")
) <-
    w: every 1d,
    while w: collect b: bid(auction, bidder, price, channel, _, _) where { price >= 1000000 };
