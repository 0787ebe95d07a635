"""This module says which events of a stream must be kept for a relation between two of them, by plain search.

The definitions are those of the language's meaning (`docs/meaning.md`), written down once more: nothing is taken from
the analysis or an engine. An event is needed while some continuation of the stream can still make an answer with it:

- while a partner may still arrive. All partners are tried that are allowed by the declared lengths, with stamps at and
  around whole units, so that what is strict shows;
- while it has a partner that has arrived, and their answer is not due yet, since it appears when the bound has passed
  its end. Only events that arrive at their begin wait so.

What arrives is known by its end, or by its begin where that is declared. A bound b says that all is here that arrives
at or before b. Streams are in whole seconds, bounds a microsecond before one: time is counted in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import numpy as np

SECOND = 1_000_000
FAR = 60
"""Partners are tried so many seconds before and behind an event; one that fits so far away fits at any time."""
FOREVER = 1 << 60

Stamps = Any
"""A number, or many as an array."""
Holds = Callable[[Stamps, Stamps, Stamps, Stamps], Any]
"""Whether a relation holds, by i.s, i.e, j.s and j.e."""


@dataclass(frozen=True, slots=True)
class Form:
    """A relation with some parameters, in seconds."""

    relation: str
    parameters: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.relation}[{', '.join(map(str, self.parameters))}]" if self.parameters else self.relation

    def holds(self, i_s: Stamps, i_e: Stamps, j_s: Stamps, j_e: Stamps) -> Any:
        """Whether i and j are in the relation."""
        if self.relation in INVERSES:
            return Form(INVERSES[self.relation], self.parameters).holds(j_s, j_e, i_s, i_e)
        limits = [p * SECOND for p in self.parameters]
        return _DEFINITIONS[self.relation, len(limits)](limits, i_s, i_e, j_s, j_e)


INVERSES = {
    "after": "before",
    "met-by": "meets",
    "overlapped-by": "overlaps",
    "started-by": "starts",
    "contains": "during",
    "finished-by": "finishes",
}


def _in(value: Stamps, least: Stamps, most: Stamps) -> Any:
    return (least <= value) & (value <= most)


def _overlap(i_s: Stamps, i_e: Stamps, j_s: Stamps, j_e: Stamps) -> Any:
    return (i_s < j_s) & (j_s < i_e) & (i_e < j_e)


_DEFINITIONS: dict[tuple[str, int], Callable[..., Any]] = {
    ("before", 0): lambda _, _i, k, s, _e: k < s,
    ("before", 1): lambda p, _i, k, s, _e: s - k == p[0],
    ("before", 2): lambda p, _i, k, s, _e: _in(s - k, p[0], p[1]),
    ("meets", 0): lambda _, _i, k, s, _e: k == s,
    ("meets", 1): lambda p, _i, k, s, _e: abs(s - k) <= p[0],
    ("overlaps", 0): lambda _, i, k, s, e: _overlap(i, k, s, e),
    ("overlaps", 1): lambda p, i, k, s, e: _overlap(i, k, s, e) & (s - i == p[0]) & (e - k == p[0]),
    ("overlaps", 2): lambda p, i, k, s, e: _overlap(i, k, s, e) & (s - i == p[0]) & (e - k == p[1]),
    ("overlaps", 4): lambda p, i, k, s, e: _overlap(i, k, s, e) & _in(s - i, p[0], p[1]) & _in(e - k, p[2], p[3]),
    ("starts", 0): lambda _, i, k, s, e: (i == s) & (k < e),
    ("starts", 1): lambda p, i, k, s, e: (i == s) & (e - k == p[0]),
    ("starts", 2): lambda p, i, k, s, e: (i == s) & _in(e - k, p[0], p[1]),
    ("starts", 3): lambda p, i, k, s, e: (abs(i - s) <= p[0]) & _in(e - k, p[1], p[2]),
    ("during", 0): lambda _, i, k, s, e: (s < i) & (k < e),
    ("during", 1): lambda p, i, k, s, e: (i - s == p[0]) & (e - k == p[0]),
    ("during", 2): lambda p, i, k, s, e: (i - s == p[0]) & (e - k == p[1]),
    ("during", 4): lambda p, i, k, s, e: _in(i - s, p[0], p[1]) & _in(e - k, p[2], p[3]),
    ("finishes", 0): lambda _, i, k, s, e: (s < i) & (k == e),
    ("finishes", 1): lambda p, i, k, s, e: (k == e) & (i - s == p[0]),
    ("finishes", 2): lambda p, i, k, s, e: (k == e) & _in(i - s, p[0], p[1]),
    ("finishes", 3): lambda p, i, k, s, e: (abs(k - e) <= p[0]) & _in(i - s, p[1], p[2]),
    ("equals", 0): lambda _, i, k, s, e: (i == s) & (k == e),
    ("equals", 1): lambda p, i, k, s, e: (abs(i - s) <= p[0]) & (abs(k - e) <= p[0]),
    ("equals", 2): lambda p, i, k, s, e: (abs(i - s) <= p[0]) & (abs(k - e) <= p[1]),
}
"""What holds by parameters, i.s, i.e, j.s and j.e, which are called i, k, s and e here."""

_PARAMETERS: dict[str, tuple[tuple[int, ...], ...]] = {
    "before": ((), (3,), (2, 5)),
    "meets": ((), (2,)),
    "overlaps": ((), (2,), (2, 4), (1, 3, 2, 4)),
    "starts": ((), (3,), (1, 4), (2, 1, 4)),
    "during": ((), (2,), (2, 3), (1, 3, 2, 4)),
    "finishes": ((), (3,), (1, 4), (2, 1, 4)),
    "equals": ((), (2,), (1, 3)),
}

FORMS = [Form(relation, given) for relation, all_given in _PARAMETERS.items() for given in all_given]
FORMS += [Form(inverse, given) for inverse, relation in INVERSES.items() for given in _PARAMETERS[relation]]
"""Every relation with every number of parameters that it takes."""


@dataclass(frozen=True, slots=True)
class Lasting:
    """An event of a stream: `i` or `j`, its key, its stamps in seconds."""

    label: str
    key: int
    begin: int
    end: int

    def arrival(self, *, at_begin: bool) -> int:
        return self.begin if at_begin else self.end


@dataclass(frozen=True, slots=True)
class Setting:
    """A relation between `i` and `j`, how long these last at most in seconds, and when they arrive."""

    form: Form
    longest: tuple[int, int]
    at_begin: bool

    @property
    def program(self) -> str:
        arrives = " ARRIVES AT BEGIN" if self.at_begin else ""
        declared = [
            f"EVENT {label}(x: int) LASTS AT MOST {n}{arrives};\n" for label, n in zip("ij", self.longest, strict=True)
        ]
        return f"TIME UNIT 1 sec;\n{''.join(declared)}p(x) <- a: i(x), b: j(x), a {self.form} b;\n"

    def stream(self, seed: int, count: int, rate: int, keys: int) -> list[Lasting]:
        """So many random events, about so many in a second, in the order in which they arrive."""
        dice = Random(seed)
        events = []
        for _ in range(count):
            label = dice.choice("ij")
            begin = dice.randrange(count // rate)
            length = dice.randrange(self.longest[label == "j"] + 1)
            events.append(Lasting(label, dice.randrange(keys), begin, begin + length))
        return sorted(dict.fromkeys(events), key=lambda e: (e.arrival(at_begin=self.at_begin), e.label, e.key))

    def answers(self, events: list[Lasting]) -> set[tuple[int, int, int]]:
        """The answers: key, begin and end."""
        return {(a.key, min(a.begin, b.begin), max(a.end, b.end)) for a, b in self._pairs(events)}

    def _pairs(self, events: list[Lasting]) -> Iterator[tuple[Lasting, Lasting]]:
        by_key: dict[tuple[str, int], list[Lasting]] = {}
        for e in events:
            by_key.setdefault((e.label, e.key), []).append(e)
        for a in events:
            for b in by_key.get(("j", a.key), []) if a.label == "i" else ():
                if self.form.holds(a.begin * SECOND, a.end * SECOND, b.begin * SECOND, b.end * SECOND):
                    yield a, b

    def needed_until(self, events: list[Lasting]) -> list[int]:
        """For each event of a stream the bound, in microseconds, from which on it is not needed."""
        found = {e: self._last_partner(e) for e in events}
        if self.at_begin:
            for a, b in self._pairs(events):
                for e in (a, b):
                    found[e] = max(found[e], max(a.end, b.end) * SECOND)
        return [found[e] for e in events]

    def _last_partner(self, e: Lasting) -> int:
        reach = last_arrival(self.form, self.longest, self.at_begin, e.label, e.end - e.begin)
        return reach if abs(reach) >= FOREVER else e.begin * SECOND + reach


@cache
def last_arrival(form: Form, longest: tuple[int, int], at_begin: bool, label: str, length: int) -> int:
    """How long after the begin of an event its last partner may arrive at most; it may be never, or at any time."""
    around = np.array([-2, -1, 0, 1, 2])
    grid = (np.arange(-FAR, FAR + 1)[:, None] * SECOND + around).ravel()
    other = longest[label == "i"] * SECOND
    begins, ends = (m.ravel() for m in np.meshgrid(grid, grid))
    possible = (begins <= ends) & (ends - begins <= other)
    begins, ends = begins[possible], ends[possible]
    own = (0, length * SECOND)
    fits = form.holds(*own, begins, ends) if label == "i" else form.holds(begins, ends, *own)
    arrivals = (begins if at_begin else ends)[fits]
    if not len(arrivals):
        return -FOREVER
    return FOREVER if arrivals.max() > (FAR - 1 - max(longest)) * SECOND else int(arrivals.max())
