"""This module says what hand-written SQL selects of what it joins: sums that are only added up, or the whole answers.

The tables are called the same in all queries: a, b, d and e for the events, c for the pairs of A and B of Q2, and q for
its pairs of D and E.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.data import HOUR


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns of each query's answers, and of what Q2 joins first."""

    pair: str
    """Q1."""
    first_pair: str
    """What Q2 needs of A and B, apart from the key and the end."""
    last_pair: str
    """What Q2 needs of D and E, apart from the key and the time of D."""
    chain: str
    """Q2, where D and E are joined first."""
    chain_of_events: str
    """Q2, where they are not."""
    absence: str
    """Q3."""
    average: str
    """Q4, in front of the average."""
    average_name: str
    group: str
    """Of which events Q4 has one average each."""


SUMS = Selection(
    pair="a.id + b.id AS ids",
    first_pair="a.id + b.id AS ids",
    last_pair="d.id + e.id AS ids",
    chain="c.ids + q.ids AS ids",
    chain_of_events="c.ids + d.id + e.id AS ids",
    absence="a.id AS ids",
    average="a.id AS ids",
    average_name="mean",
    group="a.id",
)
"""One sum of all ids, and for Q4 the average."""


def answers(time: str, begin: str = "since", end: str = "until") -> Selection:
    """Begin, end and all arguments of the head; `time` is what the column with the time of an event is called."""
    return Selection(
        pair=f"least(a.{time}, b.{time}) AS {begin}, greatest(a.{time}, b.{time}) AS {end}, a.id AS i, b.id AS j",
        first_pair=f"a.id AS i, b.id AS j, least(a.{time}, b.{time}) AS started",
        last_pair=f"d.id AS k, e.id AS l, e.{time} AS ended",
        chain=f"c.started AS {begin}, q.ended AS {end}, c.i, c.j, q.k, q.l",
        chain_of_events=f"c.started AS {begin}, e.{time} AS {end}, c.i, c.j, d.id AS k, e.id AS l",
        absence=f"a.{time} AS {begin}, a.{time} + {HOUR} AS {end}, a.id AS i",
        average=f"a.{time} - {HOUR} AS {begin}, a.{time} AS {end}, a.id AS i",
        average_name="avg_v",
        group=f"a.id, a.{time}",
    )
