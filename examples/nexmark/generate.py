"""This module makes up a stream for NEXMark: people register, offer things in auctions, and bid, 1:3:46.

`python generate.py 3000 > events.jsonl` writes lines for `ephemera run`, and `python generate.py side > side.csv` the
table that q13 joins. The same arguments give the same events. What is offered, and for how much, is made up for this
repository; only the proportions and the ranges are those of others.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

START = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)
ROUND = 50
"""In so many events there is one person, then three auctions, then bids."""
AUCTIONS = 4
FIRST = 1000
"""The number of the first person and the first auction."""
STATES = ("OR", "ID", "CA", "WA", "AZ")
CITIES = ("Salem", "Boise", "Fresno", "Tacoma", "Tucson", "Bend")
NAMES = ("Ada", "Bo", "Cleo", "Dara", "Edda", "Finn", "Gus", "Hana")
CHANNELS = ("apple", "google", "facebook", "baidu", "shop-1", "shop-2")
CATEGORIES = (10, 11, 12, 13, 14)


def events(count: int, every: timedelta = timedelta(milliseconds=200), seed: int = 1) -> Iterator[dict[str, Any]]:
    """So many events, as objects of JSON lines; the time of an auction is when it opens, and it `expires` later."""
    random = Random(seed)
    people = auctions = 0
    for number in range(count):
        now = START + number * every
        place = number % ROUND
        if place == 0:
            people += 1
            yield {"event": "person", "time": _text(now), "data": _person(random, FIRST + people - 1)}
        elif place < AUCTIONS:
            auctions += 1
            data = _auction(random, FIRST + auctions - 1, FIRST + _one_of(random, people))
            expires = now + timedelta(seconds=5 + _one_of(random, 55))
            yield {"event": "auction", "time": _text(now), "expires": _text(expires), "data": data}
        else:
            # Most bid on one of the last auctions, which are open, and some on any.
            back = _one_of(random, min(auctions, 12) if random.random() < 0.9 else auctions)
            data = _bid(random, FIRST + auctions - 1 - back, FIRST + _one_of(random, people), number)
            yield {"event": "bid", "time": _text(now), "data": data}


def side() -> list[dict[str, Any]]:
    """The rows of a table; of some keys there is none."""
    return [{"key": key, "value": f"side {key}"} for key in range(15)]


def _person(random: Random, number: int) -> dict[str, Any]:
    name = f"{_pick(random, NAMES)} {number}"
    city, state = _pick(random, CITIES), _pick(random, STATES)
    return {"id": number, "name": name, "email": f"p{number}@example.org", "city": city, "state": state}


def _auction(random: Random, number: int, seller: int) -> dict[str, Any]:
    initial = _price(random)
    own = {"id": number, "item": f"item {number}", "initial": initial, "reserve": initial + _price(random)}
    return {**own, "seller": seller, "category": _pick(random, CATEGORIES)}


def _bid(random: Random, auction: int, bidder: int, number: int) -> dict[str, Any]:
    channel = _pick(random, CHANNELS)
    own = {"auction": auction, "bidder": bidder, "price": _price(random), "channel": channel}
    return {**own, "url": f"https://example.org/{channel}/item?channel_id={number % 97}", "extra": f"bid {number}"}


def _price(random: Random) -> int:
    """From 100 to 100,000,000, small ones as often as large ones, to two figures, so that some are equal."""
    exact = 10 ** (random.random() * 6) * 100
    unit: int = 10 ** (len(str(int(exact))) - 2)
    return int(exact) // unit * unit


def _one_of(random: Random, count: int) -> int:
    return int(random.random() * count)


def _pick(random: Random, among: tuple[Any, ...]) -> Any:
    return among[_one_of(random, len(among))]


def _text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


if __name__ == "__main__":
    if sys.argv[1:] == ["side"]:
        sys.stdout.write("key,value\n" + "".join(f"{row['key']},{row['value']}\n" for row in side()))
    else:
        for event in events(int(sys.argv[1]) if len(sys.argv) > 1 else 3000):
            sys.stdout.write(json.dumps(event) + "\n")
