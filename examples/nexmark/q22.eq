-- q22, get URL directories: the parts of the URL of each bid, by functions of Python's library.

FUNCTION basename(string): string FROM "posixpath:basename";
FUNCTION dirname(string): string FROM "posixpath:dirname";
EVENT bid(auction: int, bidder: int, price: int, channel: string, url: string, extra: string);

parts(
  auction,
  bidder,
  price,
  channel,
  basename(dirname(dirname(url))),
  basename(dirname(url)),
  basename(url)
) <-
    b: bid(auction, bidder, price, channel, url, _);
