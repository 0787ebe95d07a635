SELECT t // 10000000 * 10000000, (t // 10000000 + 1) * 10000000, auction, price, bidder, extra
FROM bid QUALIFY price = max(price) OVER (PARTITION BY t // 10000000)
