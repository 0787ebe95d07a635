-- q21, add channel id: the number of the channel of each bid, of some by their names, of others by what their URL says.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

numbered(auction, bidder, price, channel, "0") <-
    b: bid(auction, bidder, price, channel, _, _),
    lower(channel) = "apple";
numbered(auction, bidder, price, channel, "1") <-
    b: bid(auction, bidder, price, channel, _, _),
    lower(channel) = "google";
numbered(auction, bidder, price, channel, "2") <-
    b: bid(auction, bidder, price, channel, _, _),
    lower(channel) = "facebook";
numbered(auction, bidder, price, channel, "3") <-
    b: bid(auction, bidder, price, channel, _, _),
    lower(channel) = "baidu";
numbered(auction, bidder, price, channel, extract(url, "[?&]channel_id=([^&]*)")) <-
    b: bid(auction, bidder, price, channel, url, _),
    lower(channel) not in ("apple", "google", "facebook", "baidu"),
    contains(url, "channel_id=") = true;
