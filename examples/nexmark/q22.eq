-- q22, get URL directories: the parts of the URL of each bid.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

parts(auction, bidder, price, channel, part(url, "/", 4), part(url, "/", 5), part(url, "/", 6)) <-
    b: bid(auction, bidder, price, channel, url, _);
