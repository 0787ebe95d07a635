"""This module hands answers to people and functions, in the driver and at least once, each with a key.

A batch that is run again after a crash delivers its answers again. The key of an answer is made from what the rules
mean that derive its label, from where the answer goes, and from its label, times and data; equal answers have equal
keys, in whatever batch, place or process they were found, and whatever else the program says. So whoever remembers
keys, or stores answers under them, has each answer once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol, TextIO, TypeAlias

from ephemera.engine.cluster.message import Answers, Shipment
from ephemera.physical.plan import PhysicalPlan
from ephemera.rules.declare import construct_label
from ephemera.spark.sinks.encode_answers import AnswerForm
from ephemera.syntax.nodes import Raise
from ephemera.terms.events import Event

Answer: TypeAlias = dict[str, Any]
"""An answer as its line of JSON says it, and its `key`."""
_SHOWN = 20
_WIDTH = 160


class Sink(Protocol):
    """Takes the answers of a batch; it may get them again."""

    def __call__(self, answers: Sequence[Answer], batch: int) -> None: ...


def key_of(rules: Sequence[str], to: Mapping[str, str], event: Event) -> str:
    """The key of an answer that rules with these fingerprints derive; `to` is what messages have besides."""
    hashed = blake2b(digest_size=16)
    for token in _tokens((tuple(sorted(set(rules))), *sorted(to.items()), event.key)):
        hashed.update(token.encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


class Rules:
    """The fingerprints of the rules of a program by what they derive or send, and where."""

    def __init__(self, physical: PhysicalPlan) -> None:
        plan = physical.logical
        self._known: dict[tuple[str, str, str], tuple[str, ...]] = {}
        self._rules: list[tuple[str | None, tuple[str, str], str]] = []
        for name, point in plan.points.items():
            if point.kind != "rule":
                continue
            one = physical.rewritten.prints[name]
            head = plan.normal[point.normal or 0].head
            to = (head.recipient, head.transport) if isinstance(head, Raise) else ("", "")
            label = construct_label(head.term) if isinstance(head, Raise) else point.label
            self._rules.append((label, to, one.fingerprint))

    def of(self, label: str, to: Mapping[str, str]) -> tuple[str, ...]:
        """Those that derive a label, or send it there; one whose label is known from data only may be any."""
        which = (label, to.get("recipient", ""), to.get("transport", ""))
        if which not in self._known:
            own = {f for known, where, f in self._rules if known in (label, None) and where == which[1:]}
            self._known[which] = tuple(sorted(own))
        return self._known[which]


def _tokens(key: object) -> Iterator[str]:
    """What a key consists of, so that equal keys have the same text and others have not; terms may be deep."""
    waiting = [key]
    while waiting:
        match waiting.pop():
            case tuple() as inner:
                yield f"({len(inner)} "
                waiting.extend(reversed(inner))
            case str() as text:
                yield f"s{len(text)}:{text}"
            case bool() as truth:
                yield "t" if truth else "f"
            case float() as number if not number.is_integer():
                yield f"d{number!r} "
            case number:
                yield f"i{int(number)} "  # type: ignore[call-overload]


@dataclass(frozen=True)
class Delivery:
    """Unpacks the answers of a batch in the driver and hands them to a sink, by end and begin."""

    forms: Mapping[int, AnswerForm]
    rules: Mapping[int, Rules]
    sink: Sink
    texts: frozenset[int] = frozenset()
    """The programs whose answers write times as text."""
    fraction: Callable[[str], Any] = float
    """What fractions are read as: doubles, unless somebody wants every digit that was written."""

    def deliver(self, batch: int, told: Iterable[Shipment]) -> int:
        """The answers among what a last stage passed on; how many there are. A batch with none is not delivered."""
        found = [one for shipment in told if isinstance(shipment, Answers) for one in self._answers(shipment)]
        if found:
            found.sort(key=lambda pair: pair[0])
            self.sink([answer for _, answer in found], batch)
        return len(found)

    def _answers(self, answers: Answers) -> Iterator[tuple[tuple[int, int, str], Answer]]:
        form = self.forms[answers.program]
        events = form.events(answers)
        to = form.recipient(answers.rule)
        rules = self.rules[answers.program].of(answers.events.label, to)
        lines = form.lines(events, answers.rule, as_numbers=answers.program not in self.texts).to_pylist()
        for event, line in zip(events.events(), lines, strict=True):
            key = key_of(rules, to, event)
            answer = {**json.loads(line, parse_float=self.fraction), **form.names, "key": key}
            yield (event.time.end, event.time.begin, key), answer


@dataclass(frozen=True, slots=True)
class EachAnswer:
    """Calls a function with one answer at a time."""

    function: Callable[[Answer], object]

    def __call__(self, answers: Sequence[Answer], batch: int) -> None:  # noqa: ARG002
        for answer in answers:
            self.function(answer)


@dataclass(frozen=True, slots=True)
class EachBatch:
    """Calls a function with all answers of a batch, and its number."""

    function: Callable[[list[Answer], int], object]

    def __call__(self, answers: Sequence[Answer], batch: int) -> None:
        self.function(list(answers), batch)


@dataclass(frozen=True, slots=True)
class Console:
    """Shows the first answers of each batch, one in a line, and how many more there are."""

    out: TextIO
    shown: int = _SHOWN
    width: int = _WIDTH

    def __call__(self, answers: Sequence[Answer], batch: int) -> None:
        count = len(answers)
        lines = [f"batch {batch}: {count:,} answer{'s' if count > 1 else ''}"]
        rows = [(_when(a), str(a["event"]), _data(a)) for a in answers[: self.shown]]
        when, label = (max(len(row[k]) for row in rows) for k in (0, 1))
        lines += [self._cut(f"  {row[0]:<{when}}  {row[1]:<{label}}  {row[2]}") for row in rows]
        if count > self.shown:
            lines.append(f"  … and {count - self.shown:,} more")
        self.out.write("".join(f"{line}\n" for line in lines))
        self.out.flush()

    def _cut(self, line: str) -> str:
        """A line that fits, and holds nothing that a terminal would obey."""
        shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
        return shown if len(shown) <= self.width else shown[: self.width - 1] + "…"


def _when(answer: Answer) -> str:
    time = answer["time"]
    return " … ".join(map(str, time)) if isinstance(time, list) else str(time)


def _data(answer: Answer) -> str:
    data = answer["term"] if "term" in answer else json.dumps(answer.get("data"), ensure_ascii=False)
    return f"{data}  to {answer['recipient']}" if "recipient" in answer else str(data)
