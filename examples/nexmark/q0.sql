SELECT t, t, auction, bidder, price, extra FROM bid
