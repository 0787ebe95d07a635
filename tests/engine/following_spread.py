"""This module follows a program in several places through changes of its rules and of the number of places.

What it should give is said by `following`: in each stretch the answers of the oracle for the program of that stretch,
for each rule from when on the change has called it exact. The rules go on from state that was written down.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import ephemera
from ephemera.engine.change.archive import ReadOnce
from ephemera.engine.cluster.change_spread import Spread, changed_spread, live_form, respread
from ephemera.engine.cluster.moved_shards import StoredEngines, write_shards
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.json_events import write_event
from ephemera.formats.reading import read_event
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World
from ephemera.terms.events import Event
from tests.engine.following import Follower, Span, told
from tests.engine.living import Beat, Host
from tests.engine.spreading import outcome_of
from tests.strategies.changes import Changing


class SpreadFollower(Follower):
    """A program in several places, and what it gave."""

    def __init__(self, case: Changing, folder: Path, dice: Random) -> None:
        super().__init__(case)
        self._folder, self._dice = folder, dice
        compiled = live_form(ephemera.compile(case.program(0))._compiled)
        spread = DistributedProgram(compiled, World(), 0, dice.choice((1, 2, 3)), -FAR, FAR)
        (folder / "0").mkdir()
        self.host = Host(spread, folder / "0", dice)
        self.respreads = 0

    def send(self, events: Any) -> None:
        compiled = self.host.spread.compiled
        shaped = self.case.shaped(self.stretches[-1].number, events)
        self.came += shaped
        self._beat(Beat([e for one in shaped if isinstance(e := read_event(one, compiled), Event)]))

    def _beat(self, beat: Beat) -> None:
        spread = self.host.spread
        found = outcome_of(spread.compiled.rules, spread.compiled.plan, self.host.beat(beat))
        catalogue = spread.compiled.rules.resolved.catalogue
        self.given |= told(write_event(event, catalogue, as_numbers=True) for event in found.events)

    def change_now(self, program: ephemera.Program, look_back: Any) -> Any:
        """The state of all places, changed and written anew."""
        host = self.host
        places = self._dice.choice((host.spread.places, 1, 2, 3))
        engines = StoredEngines(host.spread, host._store, host.batch - 1 if host.batch else None)
        new = program._planned()
        past: Any = look_back if isinstance(look_back, str) else ReadOnce(program.archive(look_back))
        changed = changed_spread(host.spread, new, World(), host.standing, engines, past, places)
        self.host = gone_on(host, changed, self._new_folder())
        assert changed.done is not None
        return changed.done.told(new.rules.resolved.catalogue.unit, as_numbers=True)

    def restart(self) -> None:
        """Goes on in another number of places."""
        self.host = respread_host(self.host, self._new_folder(), self._dice.choice((1, 2, 3, 4)))
        self.respreads += 1

    def _new_folder(self) -> Path:
        folder = self._folder / str(len(list(self._folder.iterdir())))
        folder.mkdir()
        return folder

    def bounds(self) -> dict[str, Span]:
        host, found = self.host, dict[str, Span]()
        spread, stands = host.spread, dict[frozenset[str], int]()
        engines = StoredEngines(spread, host._store, host.batch - 1 if host.batch else None)
        for group in range(len(spread.stages.groups)):
            stands |= {names: lane.bound for engine in engines(group) for names, lane in engine.lanes.items()}
        for names, lane in spread.plan.lanes.plans.items():
            bound = stands.get(names, min((host.standing.bounds.get(name, -FAR) for name in names), default=-FAR))
            for rule in lane.uses if names else ():
                for member in spread.plan.rewritten.members(rule):
                    low, high = found.get(str(member.label), (bound, bound))
                    found[str(member.label)] = min(low, bound), max(high, bound)
        return found

    def finish(self) -> None:
        self._beat(Beat(ends=True))


def respread_host(host: Host, folder: Path, places: int) -> Host:
    """A host that goes on in another number of places."""
    engines = StoredEngines(host.spread, host._store, host.batch - 1 if host.batch else None)
    return gone_on(host, respread(host.spread, host.standing, engines, places), folder)


def gone_on(before: Host, spread: Spread, folder: Path) -> Host:
    """A host that goes on from what was changed, written to a folder."""
    host = Host(spread.program, folder, before.dice, standing=spread.standing, batch=before.batch)
    if before.batch:
        write_shards([spread], host._store, before.batch - 1)
    return host
