-- q13, bounded side input join: every bid with what a table says of its auction.

EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);
TABLE side(key: int, value: string) FROM "side.csv";

enriched(auction, bidder, price, value) <-
    b: bid(auction, bidder, price, _, _, _),
    side(key, value),
    key = auction mod 20;
