"""This module is a shop whose past is read before what is read live."""

from __future__ import annotations

from typing import Any

SHOP = """
TIME UNIT 1 hour;
EVENT order(id: int);
EVENT shipped(id: int);
STREAM shop CARRIES order, shipped WATERMARK 3;
overdue(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);
quick(id) <- o: order(id), s: shipped(id), {o, s} within 2;
"""


def told(event: str, time: int, number: int) -> dict[str, Any]:
    return {"event": event, "time": time, "data": [number]}


EVENTS = [told("order", k, k) for k in range(0, 60, 2)] + [told("shipped", k + 1, k) for k in range(0, 60, 6)]
EVENTS.sort(key=lambda event: event["time"])
