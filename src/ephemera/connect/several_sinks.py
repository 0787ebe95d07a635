"""This module writes the answers of a run over a history to several places, or to systems.

Answers wait until the run has succeeded: one that fails before has written nothing anywhere. Then each place gets all
of its answers in one commit, one place after the other. No commit spans two systems: if one cannot take its answers
then, those before it have theirs, and a run that is repeated writes these again.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ephemera.connect.sink import OpenSink, Sink, spooled
from ephemera.connect.systems.live import Target
from ephemera.connect.written_places import Names, chosen
from ephemera.formats.answers import AnswerBatch


@dataclass(frozen=True, slots=True)
class ToSystem:
    """A system as a sink of a run over a history."""

    target: Target

    def open(self) -> _OpenSystem:
        return _OpenSystem(self.target)


class _OpenSystem:
    def __init__(self, target: Target) -> None:
        self._opened = target.open_target(uuid.uuid4().hex[:16])
        self._held = spooled()

    def write(self, answers: AnswerBatch) -> None:
        if len(answers):
            self._held.write(self._opened.encode(answers))

    def commit(self) -> None:
        self._held.seek(0)
        load = self._held.read()
        if load:
            self._opened.put(load, 1)
        self.abort()

    def abort(self) -> None:
        if not self._held.closed:
            self._held.close()
            self._opened.close()


@dataclass(frozen=True, slots=True)
class Several:
    """Several sinks, each with the names of what goes there."""

    sinks: Sequence[tuple[Sink, Names]]

    def open(self) -> _OpenSeveral:
        with ExitStack() as stack:
            opened: list[tuple[OpenSink, Names]] = []
            for sink, names in self.sinks:
                one = sink.open()
                stack.callback(one.abort)
                opened.append((one, names))
            stack.pop_all()
        return _OpenSeveral(opened)


@dataclass(slots=True)
class _OpenSeveral:
    opened: Sequence[tuple[OpenSink, Names]]

    def write(self, answers: AnswerBatch) -> None:
        for sink, names in self.opened:
            sink.write(chosen(answers, names))

    def commit(self) -> None:
        for sink, _ in self.opened:
            sink.commit()

    def abort(self) -> None:
        with ExitStack() as stack:
            for sink, _ in self.opened:
                stack.callback(sink.abort)
