SELECT a.t, a.expires, a.id, item, seller, category, bidder, price, extra
FROM auction a JOIN bid b ON b.auction = a.id AND b.t BETWEEN a.t AND a.expires
QUALIFY rank() OVER (PARTITION BY a.id ORDER BY price DESC, b.t) = 1
