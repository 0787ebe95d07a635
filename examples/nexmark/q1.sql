SELECT t, t, auction, bidder, price * 0.908::DOUBLE, extra FROM bid
