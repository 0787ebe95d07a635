"""This module makes up what the live benchmark reads: streams as tables, programs for them, and the right answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench import reference
from bench.data import HOUR, Stream, keyed
from bench.queries import KEYED, Case
from bench.reference import Answers

CHAIN = """
TIME UNIT 1 ms;
EVENT order(id: int);
EVENT shipping(id: int, parcel: int);
EVENT tracking(parcel: int);
sent(id, parcel) <- o: order(id), s: shipping(id, parcel), o before s, {o,s} within 2h;
tracked(id, parcel) <- s: sent(id, parcel), t: tracking(parcel), s before t, {s,t} within 4h;
"""
PER_HOUR = 200_000
"""Events of orders, shippings and trackings together."""
NARROW = 1_000
"""Milliseconds within which a hot key has not too many answers."""
_NAMES = ("order", "shipping", "tracking")


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """A stream and what is asked of it."""

    table: pa.Table
    program: str
    query: str
    right: Answers
    within: int = 0
    """How wide the window of Q1 is, in milliseconds."""

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def schema(self) -> str:
        """The columns as Spark names their types."""
        kinds = {"string": "string", "int64": "bigint"}
        return ", ".join(f"{field.name} {kinds[str(field.type)]}" for field in self.table.schema)


def queried(query: str, keys: int, events: int) -> Feed:
    """One of the queries of the other benchmarks."""
    case = Case(query, keys)
    stream = case.stream(events)
    return Feed(_table(stream), case.program, query, case.answers(stream), case.within)


def pairs(keys: int, events: int, *, hot: float = 0.0, like: int | None = None) -> Feed:
    """Q1 with a narrow window, or without a hot key with one that gives about as many answers as is said."""
    stream = keyed(keys, events, hot)
    within = NARROW
    if like is not None:
        wide = 2 * HOUR
        within = wide * like // reference.pairs(stream, wide).count
    program = f"{KEYED}Q1(i, j) <- a: A(i, x, _), b: B(j, x, _), {{a,b}} within {within} ms;"
    return Feed(_table(stream), program, "Q1", reference.pairs(stream, within), within)


def _table(stream: Stream) -> pa.Table:
    letters = np.array(list(stream.types))
    columns = {"time": stream.end, "id": stream.id, "x": stream.x, "v": stream.v}
    return _ended(pa.table({"event": pa.array(letters[stream.kind]), **columns}))


def _ended(table: pa.Table) -> pa.Table:
    """The same in which the last event is another that is in no answer: until time has passed it, an event waits."""
    last = table.slice(len(table) - 1).to_pydict()
    end = {name: [-1] for name in table.column_names} | {"event": last["event"], "time": [last["time"][0] + 1]}
    return pa.concat_tables([table, pa.table(end, table.schema)])


def chain(events: int, seed: int = 7) -> Feed:
    """Orders, each shipped within an hour as a parcel, which is seen within another hour."""
    random = np.random.default_rng(seed)
    orders = np.arange(events)  # more than come in
    parcel = random.permutation(events)
    ordered = orders * (3 * HOUR // PER_HOUR)
    shipped = ordered + random.integers(1, HOUR, events)
    tracked = shipped + random.integers(1, HOUR, events)
    order = np.argsort(np.concatenate([ordered, shipped, tracked]), kind="stable")[:events]
    kind, row = order // events, order % events
    table = pa.table(
        {
            "event": pa.array(np.array(_NAMES)[kind]),
            "time": np.arange(events) * (HOUR // PER_HOUR),
            "id": pa.array(row, mask=kind == 2),
            "parcel": pa.array(parcel[row], mask=kind == 0),
        }
    )
    last = row[kind == 2]
    return Feed(_ended(table), CHAIN, "tracked", Answers(len(last), int((last + parcel[last]).sum())))
