"""This module names the queries of the engine's benchmark: their programs, their streams and their right answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench import reference
from bench.data import HOUR, Stream, keyed, lasting
from bench.reference import Answers

KEYED = "TIME UNIT 1 ms;\n" + "".join(f"EVENT {letter}(id: int, x: int, v: int);\n" for letter in "ABDE")
LASTING = "TIME UNIT 1 ms;\n" + "".join(f"EVENT {letter}(id: int, x: int) LASTS AT MOST 2;\n" for letter in "AB")
PAIRS = "C(i, j, x) <- a: A(i, x, _), b: B(j, x, _), {a,b} within 2h;\n"
BODIES = {
    "Q1": "Q1(i, j) <- a: A(i, x, _), b: B(j, x, _), {a,b} within 2h;",
    "Q1w": "Q1w(i, j) <- a: A(i, x, _), b: B(j, x, _), {a,b} within 4h;",
    "Q2": PAIRS + "Q2(i, j, k, l) <- c: C(i, j, x), d: D(k, x, _), e: E(l, x, _), "
    "c before d, c before[0h,4h] d, d before e, d before[0h,1h] e;",
    "Q3": "Q3(i) <- a: A(i, x, _), w: extend(a, 1h), while(excl,incl) w: not B(_, x, _);",
    "Q4": "Q4(i, avg(v)) <- a: A(i, x, _), w: from-start-backward(a, 1h), while w: collect B(_, x, v);",
    "Q5m": "Q5m(i, j) <- a: A(i, _), b: B(j, _), b after[1,2] a;",
    "Q5r": "Q5r(i, j) <- a: A(i, x), b: B(j, x), b after[1,2] a;",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A query on a stream."""

    query: str
    keys: int = 0
    """Zero for the streams of lifetimes, which are always the same."""
    hot: float = 0.0

    @property
    def name(self) -> str:
        if not self.keys:
            return self.query
        return f"{self.query} {self.keys} keys" + (f", hot {self.hot:g}" if self.hot else "")

    @property
    def stream_name(self) -> str:
        return f"k{self.keys}-{self.hot:g}" if self.keys else self.query

    @property
    def within(self) -> int:
        """How wide the window of Q1 is; with a hot key, narrow enough to have about as many answers.

        That of Q1w is wide enough to have as many answers as events.
        """
        match self.query:
            case "Q1h":
                return 1_000 if self.keys >= 100_000 else 144_000_000 // self.keys
            case "Q1w":
                return 4 * HOUR
            case _:
                return 2 * HOUR

    @property
    def program(self) -> str:
        if self.query == "Q1h":
            body = f"Q1h(i, j) <- a: A(i, x, _), b: B(j, x, _), {{a,b}} within {self.within} ms;"
            return KEYED + body
        return (KEYED if self.keys else LASTING) + BODIES[self.query]

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the columns of the head are called."""
        return {"Q2": ("i", "j", "k", "l"), "Q3": ("i",), "Q4": ("i", "avg_v")}.get(self.query, ("i", "j"))

    @property
    def columns(self) -> int:
        """How many values an input event has."""
        return 3 if self.keys else 2

    def stream(self, events: int) -> Stream:
        if self.keys:
            return keyed(self.keys, events, self.hot)
        return lasting("memory" if self.query == "Q5m" else "response")

    def answers(self, stream: Stream) -> Answers:
        """What is right."""
        by_query: dict[str, Callable[[], Answers]] = {
            "Q1": lambda: reference.pairs(stream, self.within),
            "Q1h": lambda: reference.pairs(stream, self.within),
            "Q1w": lambda: reference.pairs(stream, self.within),
            "Q2": lambda: reference.chains(stream),
            "Q3": lambda: reference.absences(stream),
            "Q4": lambda: reference.averages(stream),
            "Q5m": lambda: reference.afterwards(stream, by_key=False),
            "Q5r": lambda: reference.afterwards(stream, by_key=True),
        }
        return by_query[self.query]()


def cases(keys: list[int], hot: float, queries: list[str]) -> list[Case]:
    """All cases of a run, those of one stream together."""
    found = [Case(q, k) for k in keys for q in ("Q1", "Q2", "Q3", "Q4")]
    found += [Case(q, k, hot) for k in keys for q in ("Q1h", "Q3", "Q4")] if hot else []
    found += [Case("Q5m"), Case("Q5r")]
    return [c for c in found if not queries or c.query in queries]
