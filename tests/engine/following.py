"""This module follows an engine through changes of its rules, and says what it should have given meanwhile.

In each stretch between two changes an answer is right if the oracle gives it for the program of that stretch, run over
the whole stream. That counts for each rule from when on the change has called it exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import ephemera
from ephemera.engine.change.change import Change
from ephemera.engine.change.compared import ChangeRefused
from ephemera.engine.hosts.live_engine import LiveEngine
from tests.strategies.changes import Changing

F = TypeVar("F", bound="Follower")
SECOND = 1_000_000
NEVER = 1 << 62
Span = tuple[int, int]


def told(answers: Iterable[Any]) -> set[str]:
    """Answers, to be compared."""
    return {json.dumps(answer, sort_keys=True) for answer in answers}


def end_of(answer: str) -> int:
    """When an answer ends, in microseconds."""
    time = json.loads(answer)["time"]
    return round(float(time[1] if isinstance(time, list) else time) * SECOND)


def label_of(answer: str) -> str:
    """What an answer is."""
    return str(json.loads(answer)["event"])


def oracle(program: str, events: Sequence[dict[str, Any]]) -> set[str]:
    """What a program gives over a stream."""
    return told(ephemera.compile(program).run(events, engine="oracle", allow_unbounded=True))


@dataclass
class Stretch:
    """What an engine gave between two changes of its rules."""

    number: int
    begins: dict[str, Span]
    """For each label the time behind which its answers count, by the rule that is behind, and by the one ahead."""
    ends: dict[str, Span] = field(default_factory=dict)


class Follower:
    """An engine, and what it gave."""

    def __init__(self, case: Changing) -> None:
        self.case = case
        self.engine = ephemera.compile(case.program(0)).engine()
        self.given: set[str] = set()
        self.exact: dict[tuple[str, str], int] = {}
        """From when on each rule is exact."""
        self.stretches = [Stretch(0, dict.fromkeys((label for label, _ in case.rules[0]), (-NEVER, -NEVER)))]
        self.changes: list[Change] = []
        self.refusals: list[str] = []
        self.inexact: list[str] = []
        """Added rules that are not exact though an archive had all that they need."""
        self.immovable: list[str] = []
        """The changes that could not be made at all: the program before goes on."""

    def send(self, events: Sequence[dict[str, Any]]) -> None:
        """Some events."""
        self.given |= told(self.engine.send_many(self.case.shaped(self.stretches[-1].number, events)))

    def change(self, number: int, look_back: Any = "from-now") -> None:
        """Another program; if it is not exact at once, it is as told. With an archive it has to be."""
        program = ephemera.compile(self.case.program(number))
        before = self.bounds()
        try:
            done = self.change_now(program, "refuse")
        except ChangeRefused as error:
            self.refusals.append(str(error))
            try:
                done = self.change_now(program, look_back)
            except ChangeRefused as whole:
                self.immovable.append(str(whole))
                return
        self.changes.append(done)
        self.stretches[-1].ends = before
        after = self.bounds()
        rules = self.case.rules[number]
        begins = {label: after.get(label, (-NEVER, -NEVER)) for label, _ in rules}
        for name in done.added:
            rule = rules[int(name.rpartition("rule ")[2].rstrip(")")) - 1]
            time = done.answers_from[name]
            self.exact[same(rule)] = (
                NEVER if time is None else -NEVER if isinstance(time, str) else round(time * SECOND)
            )
            if not isinstance(look_back, str) and self.exact[same(rule)] > begins[rule[0]][1]:
                self.inexact.append(f"{name} is exact from {time} on, though all that has come is there")
        self.stretches.append(Stretch(number, begins))

    def change_now(self, program: ephemera.Program, look_back: Any) -> Change:
        """The change itself."""
        return self.engine.change(program, look_back=look_back)

    def bounds(self) -> dict[str, Span]:
        """For each label how far the rules are that derive it."""
        return bounds(self.engine)

    def restart(self) -> None:
        """Goes on in another engine, from a snapshot."""
        number = self.stretches[-1].number
        snapshot = self.engine.snapshot()
        self.engine = ephemera.compile(self.case.program(number)).engine().restore(snapshot)

    def finish(self) -> None:
        """The stream has ended."""
        self.given |= told(self.engine.finish())

    def wrong(self) -> dict[str, set[str]]:
        """What lacks of the answers, and what is too much."""
        lacking: set[str] = set()
        counted: set[str] = set()
        every: set[str] = set()
        for stretch in self.stretches:
            found = oracle(self.case.program(stretch.number), self.case.shaped(stretch.number, self.case.events))
            rules = self.case.rules[stretch.number]
            for label in {label for label, _ in rules}:
                begins, latest = stretch.begins[label]
                exact = [self.exact.get(same(rule), -NEVER) for rule in rules if rule[0] == label]
                ends, last = stretch.ends.get(label, (NEVER, NEVER))
                lacking |= {a for a in found if label_of(a) == label and max(latest, *exact) < end_of(a) <= ends}
                every |= {a for a in self.given if label_of(a) == label and begins < end_of(a) <= max(exact)}
                counted |= {a for a in found if label_of(a) == label and begins < end_of(a) <= last}
        lacking -= self.given
        return {"lacking": lacking, "too much": self.given - counted - every}


def same(rule: tuple[str, str]) -> tuple[str, str]:
    """A rule as it was before its types got attributes that it does not ask for."""
    return rule[0], re.sub(r"\ba\((\w+), (\w+), _\)", r"a(\1, \2)", rule[1])


def bounds(engine: LiveEngine) -> dict[str, Span]:
    """For each label how far the rules are that derive it: the one that is behind, and the one ahead."""
    found: dict[str, Span] = {}
    for names, lane in engine._engine.lanes.items():
        for rule in lane.plan.uses:
            if names:
                for member in engine.compiled.physical.rewritten.members(rule):
                    low, high = found.get(str(member.label), (lane.bound, lane.bound))
                    found[str(member.label)] = min(low, lane.bound), max(high, lane.bound)
    return found


def followed(case: Changing, dice: Random, *, restarts: bool = False, archive: float = 0) -> Follower:
    """An engine that has gone through all changes of a case, so likely with an archive of all that has come."""
    return led(Follower(case), dice, restarts=restarts, archive=archive)


def led(follower: F, dice: Random, *, restarts: bool = False, archive: float = 0) -> F:
    """Leads somebody through all changes of a case."""
    case, at = follower.case, 0
    for number, moment in enumerate(case.moments, 1):
        while at < moment:
            size = min(dice.choice((1, 2, 7, 40)), moment - at)
            follower.send(case.events[at : at + size])
            at += size
        if restarts and dice.random() < 0.3:
            follower.restart()
        way: Any = dice.choice(("from-now", "available"))
        has_archive = archive == 1 or (archive > 0 and dice.random() < archive)
        follower.change(number, case.shaped(number, case.events[:at]) if has_archive else way)
        if restarts and dice.random() < 0.5:
            follower.restart()
    follower.send(case.events[at:])
    follower.finish()
    return follower
