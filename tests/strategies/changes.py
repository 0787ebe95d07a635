"""This module generates programs that change while they run: pairs of programs, a stream, and a moment in it.

Both programs declare the same types. Rules join, are alike, wait for timers, ask for absence and collect, some of what
others derive; the second program lacks some rules of the first, has others, and some in other words. It may declare
otherwise what both declare.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

BASE = ("a", "b", "c")
VIEWS = ("d", "e")
GROWING = re.compile(r"\ba\((\w+), (\w+)\)")
"""What asks for an `a` that has two attributes."""


@dataclass(frozen=True, slots=True)
class Changing:
    """Programs that follow each other, and a stream that is cut between them."""

    declared: tuple[str, ...]
    """For each program its declarations; some reserve events."""
    rules: tuple[tuple[tuple[str, str], ...], ...]
    """For each program its rules: what they derive, and their text."""
    events: tuple[dict[str, Any], ...]
    """In the order in which they arrive."""
    moments: tuple[int, ...]
    """After how many events each change comes."""
    grown: tuple[bool, ...] = ()
    """For each program whether `a` has a third attribute, if it ever has: of events before that it is null."""

    def shaped(self, number: int, events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Events as one of the programs declares them."""
        has_more = bool(self.grown) and self.grown[number]
        return [one if has_more or one["event"] != "a" else {**one, "data": one["data"][:2]} for one in events]

    def program(self, number: int) -> str:
        """The text of one of the programs."""
        return "\n".join([self.declared[number], *(text for _, text in self.rules[number])])


def changings(count: int, *, streams: bool = False, changes: int = 1, grows: bool = False) -> Iterator[Changing]:
    """The same every time."""
    for seed in range(count):
        yield make(Random(seed), streams=streams, changes=changes, grows=grows)


def make(dice: Random, *, streams: bool = False, changes: int = 1, grows: bool = False) -> Changing:
    """One of them, by the dice; maybe one in which a type gets an attribute, and streams other watermarks."""
    case = _made(dice, streams=streams, changes=changes)
    return _grown(dice, case) if grows else case


def _grown(dice: Random, case: Changing) -> Changing:
    """The same with one more attribute from some change on, which old rules do not ask for, and some new ones do."""
    first = dice.randrange(1, len(case.declared))
    declared, rules = list(case.declared), list(case.rules)
    more = dice.choice((1, 4, 9))
    for number in range(first, len(declared)):
        text = declared[number].replace("EVENT a(k: int, v: int)", "EVENT a(k: int, v: int, u: int)")
        declared[number] = re.sub(r"WATERMARK (\d+)", lambda found: f"WATERMARK {int(found[1]) + more}", text)
        own = [(label, GROWING.sub(r"a(\1, \2, _)", text)) for label, text in rules[number]]
        if dice.random() < 0.5:
            times = f"i before j, {{i, j}} within {dice.choice((2, 5))}"
            own.append(("q", f"q(k, u) <- i: a(k, _, u), j: b(k, _), {times};"))
        rules[number] = tuple(own)
    values = [dice.randrange(2) if place >= case.moments[first - 1] else None for place in range(len(case.events))]
    events = [
        {**event, "data": [*event["data"], value]} if event["event"] == "a" else event
        for event, value in zip(case.events, values, strict=True)
    ]
    grown = tuple(number >= first for number in range(len(declared)))
    return Changing(tuple(declared), tuple(rules), tuple(events), case.moments, grown)


def _made(dice: Random, *, streams: bool, changes: int) -> Changing:
    declared = ["TIME UNIT 1 sec;", *(f"EVENT {label}(k: int, v: int);" for label in (*BASE, *VIEWS))]
    if streams:
        declared += ["STREAM s CARRIES a, b WATERMARK 3 sec;", "STREAM t CARRIES c WATERMARK 6 sec;"]
    elif dice.random() < 0.3:
        declared += [f"STREAM s CARRIES a, b, c WATERMARK {dice.choice((2, 5))} sec;"]
    first = _rules(dice, dice.randrange(1, 5))
    programs = [first]
    for _ in range(changes):
        programs.append(_changed(dice, programs[-1]))
    events = _stream(dice, 60, streams=streams)
    moments = sorted(dice.randrange(1, len(events)) for _ in range(changes))
    reserves = [
        [f"RESERVE {label} {dice.choice((4, 12))} sec;" for label in dice.sample(BASE, dice.choice((0, 0, 2, 3)))]
    ]
    for _ in range(changes):
        reserves.append(reserves[-1] if dice.random() < 0.8 else [])
    texts = ["\n".join([*declared, *more]) for more in reserves]
    return Changing(tuple(texts), tuple(tuple(rules) for rules in programs), tuple(events), tuple(moments))


def _rules(dice: Random, count: int) -> list[tuple[str, str]]:
    return [_rule(dice) for _ in range(count)]


def _changed(dice: Random, rules: list[tuple[str, str]]) -> list[tuple[str, str]]:
    kept = [one for one in rules if dice.random() < 0.75]
    more = _rules(dice, dice.choice((0, 1, 1, 2, 3)))
    found = kept + more
    dice.shuffle(found)
    return found or _rules(dice, 1)


def _rule(dice: Random) -> tuple[str, str]:
    if dice.random() < 0.25:
        label = dice.choice(VIEWS)
        return label, dice.choice(_VIEWS)(dice, label)
    label = dice.choice(("p", "q", "r"))
    return label, dice.choice(_OUTPUTS)(dice, label)


def _view_of_one(dice: Random, label: str) -> str:
    return f"{label}(k, v) <- i: {dice.choice(BASE)}(k, v), v > {dice.randrange(3)};"


def _view_of_two(dice: Random, label: str) -> str:
    one, other = dice.sample(BASE, 2)
    return f"{label}(k, v) <- i: {one}(k, v), j: {other}(k, _), i before j, {{i, j}} within {dice.choice((3, 6))};"


def _view_of_absence(dice: Random, label: str) -> str:
    one, other = dice.sample(BASE, 2)
    return f"{label}(k, v) <- i: {one}(k, v), w: extend(i, {dice.choice((2, 4))}), while w: not {other}(k, _);"


def _read(dice: Random) -> str:
    return dice.choice((*BASE, *BASE, *VIEWS))


def _plain(dice: Random, label: str) -> str:
    return f"{label}(k, v) <- i: {_read(dice)}(k, v);"


def _alike(dice: Random, label: str) -> str:
    limit = dice.randrange(4)
    first, second = dice.choice((("a", "b"), ("b", "c")))
    return f"{label}(k, w) <- i: {first}(k, {limit}), j: {second}(k, w), i before j, {{i, j}} within 6;"


def _alike_later(dice: Random, label: str) -> str:
    return f"{label}(k, 1) <- i: a({dice.randrange(3)}, k), w: extend(i, 5), while w: not b(_, k);"


def _join(dice: Random, label: str) -> str:
    within = dice.choice((2, 5, 9))
    return f"{label}(k, w) <- i: {_read(dice)}(k, _), j: {_read(dice)}(_, w), i before j, {{i, j}} within {within};"


def _same(dice: Random, label: str) -> str:
    read = _read(dice)
    return f"{label}(k, w) <- i: {read}(k, _), j: {read}(k, w), i != j, {{i, j}} within {dice.choice((2, 5))};"


def _three(dice: Random, label: str) -> str:
    times = "i before j, j before l, {i, l} within 8"
    return f"{label}(k, v) <- i: {_read(dice)}(k, v), j: {dice.choice(BASE)}(k, _), l: {_read(dice)}(k, _), {times};"


def _absence(dice: Random, label: str) -> str:
    length = dice.choice((2, 5, 9))
    own = dice.choice(("", " where { u > 1 }"))
    return f"{label}(k, v) <- i: {_read(dice)}(k, v), w: extend(i, {length}), while w: not {_read(dice)}(k, u){own};"


def _absence_before(dice: Random, label: str) -> str:
    length = dice.choice((2, 5, 9))
    return f"{label}(k, v) <- i: {_read(dice)}(k, v), w: extend-begin(i, {length}), while w: not {_read(dice)}(k, _);"


def _counted(dice: Random, label: str) -> str:
    way = dice.choice(("extend", "extend-begin"))
    return (
        f"{label}(k, count(*)) <- i: {dice.choice(BASE)}(k, _), w: {way}(i, {dice.choice((3, 7))}), "
        f"while w: collect {_read(dice)}(k, u);"
    )


def _summed(dice: Random, label: str) -> str:
    return (
        f"{label}(k, sum(u)) <- i: {dice.choice(BASE)}(k, _), w: extend-begin(i, {dice.choice((3, 7))}), "
        f"while w: collect {_read(dice)}(_, u) where {{ u > {dice.randrange(2)} }};"
    )


def _told(dice: Random, label: str) -> str:
    limit = dice.choice((2, 5))
    return f"{label}(k, v) <- i: {_read(dice)}(k, v), w: extend(i, v + 1 AT MOST {limit}), while w: not b(k, _);"


def _window(dice: Random, label: str) -> str:
    window = dice.choice(("every 4", "window 6 every 2", "window 5 every 3 offset 1"))
    return f"{label}(k, count(*)) <- w: {window}, while w: collect {_read(dice)}(k, _);"


def _algebra(dice: Random, label: str) -> str:
    first, second = dice.sample(BASE, 2)
    return f"{label}(k, v) <- detect x: ({first}(k, v) ; {second}(k, _)), x within {dice.choice((3, 6))};"


Maker = Callable[[Random, str], str]
_VIEWS: tuple[Maker, ...] = (_view_of_one, _view_of_two, _view_of_absence)
_OUTPUTS: tuple[Maker, ...] = (
    *(_plain, _alike, _alike, _alike_later, _alike_later, _join, _same, _three, _absence, _absence),
    *(_absence_before, _counted, _summed, _told, _window),
)


def _stream(dice: Random, count: int, *, streams: bool) -> list[dict[str, Any]]:
    time = 0
    found: list[tuple[float, dict[str, Any]]] = []
    for _ in range(count):
        time += dice.choice((0, 0, 1, 1, 2))
        label = dice.choice(BASE)
        event = {"event": label, "time": time, "data": [dice.randrange(3), dice.randrange(4)]}
        late = dice.random() * (5.5 if label == "c" else 2.5) if streams else 0
        found.append((time + late, event))
    return [event for _, event in sorted(found, key=lambda one: one[0])]
