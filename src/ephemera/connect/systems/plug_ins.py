"""This module lets classes of other packages be systems: two methods each, found by an entry point.

A source is `read(position, seconds)` and `close()`; a sink is `write(answers, number)` and `close()`. Both are made
with an `Address`. A package offers them in the groups `ephemera.sources` and `ephemera.sinks`, under the scheme of
their addresses. `docs/connectors.md` shows one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from ephemera.connect.systems.address import Address, WrongAddress
from ephemera.connect.systems.live import Arrived
from ephemera.formats.answers import AnswerBatch
from ephemera.formats.decode import Objects

QUIET = 1.0
"""Seconds that a plug-in has to bring more, before it is taken to have no more of a history."""
Group = Literal["ephemera.sources", "ephemera.sinks"]


class PlugInSource(Protocol):
    """What a package offers as a source."""

    def read(self, position: Any, seconds: float) -> tuple[Sequence[Any], Any] | None:
        """The events behind a position (None at first), and the position behind those, which JSON can hold.

        Waits so many seconds at most; an empty list if nothing has come, None if nothing ever will. A history ends with
        either of these. It may be read twice, if its events are far from the order of time: by another object of the
        class then, from None on.
        """

    def close(self) -> None:
        """Nobody reads any more."""


class PlugInSink(Protocol):
    """What a package offers as a sink."""

    def write(self, answers: list[dict[str, Any]], number: int) -> None:
        """The answers of a commit, by number; after a crash, those of the last come again under the same number."""

    def close(self) -> None:
        """Nobody writes any more."""


def schemes(group: Group) -> list[str]:
    """The schemes for which packages offer something."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it takes a while to load

    return sorted({one.name for one in entry_points(group=group)})


def plug_in(group: Group, address: Address) -> Any:
    """What a package offers for an address, made with it; None if none does."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it takes a while to load

    found = next(iter(entry_points(group=group, name=address.scheme)), None)
    if found is None:
        return None
    try:
        made = found.load()(address)
    except ImportError as error:
        raise WrongAddress(f"`{address}`: the plug-in {found.value} cannot be loaded: {error}") from None
    wanted = ("read", "close") if group == "ephemera.sources" else ("write", "close")
    lacking = next((name for name in wanted if not callable(getattr(made, name, None))), None)
    if lacking is not None:
        raise WrongAddress(f"`{address}`: the plug-in {found.value} has no method `{lacking}`")
    return made


@dataclass(frozen=True, slots=True)
class PlugInAsSource:
    """A plug-in as any run reads it."""

    address: Address
    made: list[PlugInSource]
    """One that was made to see whether it can be, for who opens it first; others get one of their own."""
    only: str | None = None

    @property
    def name(self) -> str:
        return str(self.address)

    @property
    def can_reopen(self) -> bool:
        return True

    def open(self, position: Any = None) -> _OpenPlugIn:
        return _OpenPlugIn(self._next(), position)

    def open_live(self, position: Any = None) -> _OpenPlugIn:
        return _OpenPlugIn(self._next(), position)

    def _next(self) -> PlugInSource:
        made: PlugInSource = self.made.pop() if self.made else plug_in("ephemera.sources", self.address)
        return made


class _OpenPlugIn:
    def __init__(self, made: PlugInSource, position: Any) -> None:
        self._made = made
        self.position = position
        self.behind = {"0"}

    def read(self) -> Objects | None:
        """Over history, it has ended when nothing has come for a while."""
        found = self._made.read(self.position, QUIET)
        if found is None or not found[0]:
            return None
        events, self.position = found
        return Objects(list(events))

    def poll(self, seconds: float) -> list[Arrived]:
        found = self._made.read(self.position, seconds)
        if found is None or not found[0]:
            self.behind.clear()
        if found is None:
            return []
        events, self.position = found
        return [Arrived("0", Objects(list(events)))] if events else []

    def confirm(self) -> None:
        """The checkpoint has the position."""

    def close(self) -> None:
        self._made.close()


@dataclass(frozen=True, slots=True)
class PlugInAsTarget:
    """A plug-in as a run writes to it."""

    address: Address
    made: PlugInSink

    @property
    def name(self) -> str:
        return str(self.address)

    def open_target(self, identity: str, position: Any = None) -> _OpenPlugInTarget:
        del identity, position
        return _OpenPlugInTarget(self.made)


@dataclass(frozen=True, slots=True)
class _OpenPlugInTarget:
    made: PlugInSink
    position: Any = None

    def encode(self, answers: AnswerBatch) -> bytes:
        return answers.lines()

    def put(self, load: bytes, number: int) -> None:
        self.made.write([msgspec.json.decode(line) for line in load.splitlines()], number)

    def close(self) -> None:
        self.made.close()
