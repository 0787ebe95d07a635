SELECT a.t, a.expires, a.id, item, seller, bidder, price, channel, extra
FROM auction a JOIN bid b ON b.auction = a.id AND b.t BETWEEN a.t AND a.expires
WHERE category = 10
