"""Answers that go to several systems: one commit each, one after the other, and none stays open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import ephemera
from ephemera.connect.several_sinks import Several, ToSystem
from ephemera.connect.systems.address import NoAnswer
from ephemera.connect.written_places import Written
from ephemera.formats.answers import AnswerBatch
from ephemera.spark.runtime.shipped_answers import put_history

PROGRAM = ephemera.compile("EVENT a(x: int); b(x) <- i: a(x);")
EVENTS = [{"event": "a", "time": x, "data": [x]} for x in (1, 2)]


@dataclass(slots=True)
class Told:
    """A system that may be away, and what it is told."""

    name: str = "told"
    opens: bool = True
    takes: bool = True
    loads: list[bytes] = field(default_factory=list)
    closed: int = 0
    position: Any = None

    def open_target(self, identity: str, position: Any = None) -> Told:
        del identity, position
        if not self.opens:
            raise NoAnswer("nobody is at home")
        return self

    def encode(self, answers: AnswerBatch) -> bytes:
        return answers.lines()

    def put(self, load: bytes, number: int) -> None:
        del number
        if not self.takes:
            raise NoAnswer("nobody is at home")
        self.loads.append(load)

    def close(self) -> None:
        self.closed += 1


def run(*systems: Told) -> None:
    PROGRAM.run(EVENTS, sink=Several([(ToSystem(one), None) for one in systems]))


def test_each_system_gets_all_answers_in_one_commit() -> None:
    one, other = Told(), Told()
    run(one, other)
    assert len(one.loads) == 1
    assert one.loads == other.loads
    assert one.loads[0].count(b'"b"') == 2
    assert (one.closed, other.closed) == (1, 1)


def test_a_system_that_is_away_at_the_end_leaves_those_before_it_with_their_answers_and_none_open() -> None:
    systems = Told(), Told(takes=False), Told()
    with pytest.raises(NoAnswer):
        run(*systems)
    assert [len(one.loads) for one in systems] == [1, 0, 0]
    assert [one.closed for one in systems] == [1, 1, 1]


def run_on_spark(*systems: Told) -> None:
    """What is done in the driver when a run over a history has succeeded."""
    put_history([Written(one) for one in systems], (), (), as_numbers=True)


@pytest.mark.parametrize("runs", [run, run_on_spark])
def test_a_system_that_cannot_be_opened_leaves_none_open(runs: Callable[..., None]) -> None:
    one, other = Told(), Told(opens=False)
    with pytest.raises(NoAnswer):
        runs(one, other)
    assert (one.loads, one.closed) == ([], 1)
