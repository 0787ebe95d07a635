SELECT DISTINCT t, t, auction, bidder, price, value FROM bid JOIN side ON key = auction % 20
