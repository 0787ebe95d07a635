SELECT DISTINCT t, t, auction, bidder, price, channel,
  split_part(url, '/', 4), split_part(url, '/', 5), split_part(url, '/', 6)
FROM bid
