"""This module says how far a live query reads systems, batch by batch, in the driver.

Between which positions a batch lies is written to the checkpoint before it begins, so that one that is done again reads
the same. A row of Spark is no event here: Spark only counts batches, by a source that has always something new, and
tasks find in their turn which stretches of the systems are theirs (`spark/live/system_intake`). So events come to the
task that lets them in as the system gives them. A batch that would have nothing waits until there is something.

A batch takes so many messages of a system at most, so that a long past is worked off in batches that fit in memory; one
that takes what is there takes all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ephemera.base.errors import EphemeraError, warned
from ephemera.connect.systems.address import NoAnswer
from ephemera.connect.systems.source_names import Identified, Known, changes, known_again, source_key
from ephemera.connect.systems.stretches import InStretches, LookedAt, Position, Reached, Stretch
from ephemera.spark.live.checkpoint import Checkpoint, WrongCheckpoint

MOST = 1_000_000
"""Messages of a system that a batch takes at most."""
_PAUSE, _LONGEST_PAUSE = 0.02, 0.2
"""Seconds after which systems are asked again whether there is something: at first, and when they have been silent."""
_AWAY = 0.5
"""The same if one does not answer."""
_LONGEST = 600.0
"""Seconds for which a system may be away in mid-run."""

Stretches = Mapping[int, tuple[Stretch, ...]]
"""For each system what a batch reads of it."""


class QueryStopping(EphemeraError):
    """A batch that was not begun because the query is about to stop."""

    def __init__(self) -> None:
        super().__init__("the query has been stopped")


@dataclass(slots=True)
class Positions:
    """The systems of a query, by the numbers of its inputs, and how far each has been read."""

    ledger: Checkpoint
    systems: Mapping[int, InStretches]
    most: int | None = MOST
    patience: float | None = None
    """Seconds for which a batch waits for something; None is for ever."""
    once: bool = False
    """Whether only the first batch of a start that is new reads systems: what is there then."""
    tell: Callable[[str], object] = warned
    """Tells people what they should know at once."""
    at: dict[int, Position] = field(default_factory=dict)
    """Where the batch at hand ends."""
    done: dict[int, Position] = field(default_factory=dict)
    """Where the last one ended that was committed."""
    _has_answered: bool = False
    _is_over: bool = False
    _looks: dict[int, float] = field(default_factory=dict)
    """When each system may be looked at again."""
    _identities: dict[str, str | None] = field(default_factory=dict)
    """What the systems say that they are, by their keys."""
    _now: Mapping[str, str] | None = None
    """By what the batch before the first of this start knew the systems, and by what they are known now."""

    def cut(self, batch: int, is_stopping: Callable[[], bool]) -> Stretches:
        """What a batch reads, however often it is done."""
        keys = {n: source_key(system.source) for n, system in self.systems.items()}
        planned = self.ledger.positions_of(batch)
        is_asked = batch > 0 and (planned is None or self._now is None)
        before = (self.ledger.positions_of(batch - 1) if is_asked else None) or {}
        if self._now is None:
            again = known_again(self._sources(keys), _known(before))
            self._now = {str(n): key for n, key in keys.items()} | {one.key: key for key, one in again.items()}
        if planned is None:
            planned = self._planned(keys, before, is_stopping)
            self.ledger.note_positions(batch, planned)
            found = {key: key for key in planned}
        else:
            found = self._found_again(batch, keys, planned)
        stretches: dict[int, tuple[Stretch, ...]] = {}
        for n, system in self.systems.items():
            told = planned[found[keys[n]]]
            behind = set(told["behind"])
            between = system.between(told["first"], told["last"])
            stretches[n] = tuple(replace(one, is_behind=one.partition in behind) for one in between)
            self.at[n] = told["last"]
        return stretches

    def partition_now(self, name: str) -> str | None:
        """What a partition is called in this start that had a name before it, if its system is still read.

        Earlier versions counted systems in the order in which they were named.
        """
        before, _, partition = name.rpartition("/")
        key = (self._now or {}).get(before)
        return None if key is None else f"{key}/{partition}"

    def _planned(
        self, keys: Mapping[int, str], before: Mapping[str, Any], is_stopping: Callable[[], bool]
    ) -> dict[str, Any]:
        """What a batch is to read that was never begun; several inputs that are one system are read alike."""
        sources = self._sources(keys)
        known = _known(before)
        found = known_again(sources, known)
        if before:
            for told in changes(sources, known, found, self.ledger.root):
                self.tell(told)
        own = {keys[n]: n for n in self.systems}
        first = {n: found[key].position if key in found else self.systems[n].begin() for key, n in own.items()}
        patience = 0.0 if any(key not in found for key in own) else self.patience  # where it begins is soon in there
        reached = _nothing(first) if self._is_over else self._awaited(first, patience, is_stopping)
        self._is_over = self.once
        if self._identities.keys() != own.keys():
            self._identities = {key: _identity(sources[key]) for key in own}
        return {
            key: {
                "first": dict(first[n]),
                "last": dict(reached[n].position),
                "behind": sorted(reached[n].behind),
                "name": sources[key].name,
                "identity": self._identities[key],
            }
            for key, n in own.items()
        }

    def _found_again(self, batch: int, keys: Mapping[int, str], planned: Mapping[str, Any]) -> dict[str, str]:
        """What the inputs were called when a batch was begun; raises if it did not read the same."""
        found = {key: one.key for key, one in known_again(self._sources(keys), _known(planned)).items()}
        lacking = next((self.systems[n].source.name for n, key in keys.items() if key not in found), None)
        if lacking is not None:
            raise WrongCheckpoint(
                f"batch {batch} was begun without `{lacking}`; start once more with what was read then, "
                "or begin anew with another checkpoint"
            )
        for key, told in planned.items():
            if key not in found.values() and told["first"] != told["last"]:
                raise WrongCheckpoint(
                    f"batch {batch} was begun with `{told.get('name', key)}`, which is not read now; start once more "
                    "with what was read then, or begin anew with another checkpoint"
                )
        return found

    def _sources(self, keys: Mapping[int, str]) -> dict[str, LookedAt]:
        return {keys[n]: system.source for n, system in self.systems.items()}

    def has_read(self, ends: Mapping[int, Position]) -> bool:
        """Whether the last batch that was committed went as far as this."""
        return all(n in self.done and not self.systems[n].between(self.done[n], e) for n, e in ends.items())

    def ends(self) -> dict[int, Position]:
        """How far there is something to read now."""
        return {n: system.reached(self.done.get(n, {})).position for n, system in self.systems.items()}

    def commit(self) -> None:
        """The batch at hand has been committed."""
        self.done = dict(self.at)

    def _awaited(
        self, first: Mapping[int, Position], patience: float | None, is_stopping: Callable[[], bool]
    ) -> dict[int, Reached]:
        """How far systems can be read, as soon as there is something to read in one of them."""
        until = None if patience is None else time.monotonic() + patience
        pause = _PAUSE
        while True:
            found = _nothing(first)
            for n, system in ((n, self.systems[n]) for n in first):
                if self.once or time.monotonic() >= self._looks.get(n, 0.0):
                    found[n] = self._reached(system, first[n], is_stopping)
                    self._looks[n] = time.monotonic() + system.source.every()
            is_over = is_stopping() or (until is not None and time.monotonic() >= until)
            if is_over or any(self.systems[n].between(first[n], one.position) for n, one in found.items()):
                return found
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _reached(self, system: InStretches, since: Position, is_stopping: Callable[[], bool]) -> Reached:
        """How far a system can be read; it may be away for a while, if it has answered before.

        Nobody waits for it when the query is being stopped; then the batch is begun by the next start.
        """
        until = time.monotonic() + _LONGEST
        is_away = False
        while True:
            try:
                found = system.reached(since, self.most)
            except NoAnswer as error:
                if is_stopping():
                    raise QueryStopping from None
                if not self._has_answered or time.monotonic() > until:
                    raise
                if not is_away:
                    self.tell(f"{error}; it is waited for, {_LONGEST:.0f} seconds at most")
                is_away = True
                time.sleep(_AWAY)
            else:
                if is_away:
                    self.tell(f"{system.source.name} answers again")
                self._has_answered = True
                return found


def note_begin(ledger: Checkpoint, systems: Mapping[int, InStretches]) -> None:
    """Writes down where systems begin that are read behind a past: before that is read, however long it takes.

    It stands where the positions of the batch of the past would, which reads no system.
    """
    if not systems or ledger.positions_of(0) is not None:
        return
    begins = {source_key(one.source): (one, dict(one.begin())) for one in systems.values()}
    told = {"behind": list[str]()}
    ledger.note_positions(
        0,
        {
            key: {"first": at, "last": at, **told, "name": one.source.name, "identity": _identity(one.source)}
            for key, (one, at) in begins.items()
        },
    )


def _known(positions: Mapping[str, Any]) -> list[Known]:
    """What is known of systems behind a batch; checkpoints of earlier versions only have their names."""
    return [Known(key, one["last"], one.get("name", key), one.get("identity")) for key, one in positions.items()]


def _identity(source: LookedAt) -> str | None:
    return source.identity() if isinstance(source, Identified) else None


def _nothing(first: Mapping[int, Position]) -> dict[int, Reached]:
    """As far as was read already."""
    return {n: Reached(position) for n, position in first.items()}
