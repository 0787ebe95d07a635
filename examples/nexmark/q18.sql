SELECT t // 86400000000 * 86400000000, (t // 86400000000 + 1) * 86400000000, auction, bidder, price, extra
FROM bid QUALIFY t = max(t) OVER (PARTITION BY t // 86400000000, auction, bidder)
