"""This module keeps what a live query must know to go on: of which programs it is, and where they stood after a batch.

It stands in the folder of the checkpoint beside what Spark writes there. A query that does not belong to it is refused,
with what differs. Where the programs stood is written before Spark commits a batch, under the number of the batch; that
of the batch before stays, since Spark may come back to it. Each file says of which query and batch it is, and has a
checksum. Where Spark would begin a batch that does not follow what is here, nothing is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ephemera.algebra.fingerprint import digest
from ephemera.base.errors import EphemeraError
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.source_progress import Progress, read_standing
from ephemera.engine.state.durable_files import Broken, Posix, files_of, seal, unseal
from ephemera.engine.state.identity import AnotherProgram, compare, compared, program_of, warn_of_changes, world_of
from ephemera.spark.live.fault_points import mark

FORMAT = 3
QUERY = "query.json"
CLOCK = "clock"
POSITIONS = "positions"
PAST = "past.json"
LIVE_LOG, PAST_LOG = "spark", "past"
"""Where Spark keeps which input belongs to which batch: of what is read live, and of the past before it."""
VERSION, CHANGED, SOURCES, FORMS = "version", "changed", "sources", "forms"
"""What the file that says whose checkpoint it is may have besides: what was changed, and the texts of the programs."""
_WAY_OUT = "bring the whole checkpoint back from a copy, or begin anew with another checkpoint"
_OURS = ("progress", "spark", "spark/offsets", "spark/commits", "past", "past/offsets", "state/0-0")
"""Folders in which there are files if a query has been here."""

Standings = Mapping[int, Progress]
"""Where the programs of a query stand."""


ToldSource = Mapping[str, Any]
"""The text of a program, and what it was asked for."""


class WrongCheckpoint(EphemeraError):
    """A checkpoint that this query cannot go on from."""


@dataclass(frozen=True, slots=True)
class ChangedAt:
    """Behind which batch programs or shards were changed, and where the programs stand then."""

    batch: int
    standings: Standings


class Checkpoint:
    """The ledger of a live query."""

    def __init__(self, checkpoint: str) -> None:
        self._files, self._folder = self.place = files_of(checkpoint)
        self.root = self._folder if isinstance(self._files, Posix) else checkpoint.rstrip("/")
        """The checkpoint as any process finds it, wherever it was started."""
        self.version = 0
        """How often its programs or the number of its shards have changed."""
        self._changed: ChangedAt | None = None
        self._known: dict[int, Standings] = {}
        self._has_begun = False
        self._has_clock = False
        self._has_positions = False
        self._world: dict[str, str] = {}
        self.query = ""
        """Names the query for as long as its checkpoint lives."""
        self.programs = ""
        """A fingerprint of its programs."""
        self.log = LIVE_LOG
        self.base = 0
        """The first batch of what is read live: those before it are of the past."""

    @property
    def state(self) -> str:
        """Where the shards have their state: each version has its own folder."""
        return f"{self.root}/{state_folder(self.version)}"

    @property
    def is_there(self) -> bool:
        """Whether a query has begun here."""
        return QUERY in self._files.names(self._folder)

    @property
    def content(self) -> dict[str, Any]:
        """Whose checkpoint it is, as it is written there."""
        return self._get(QUERY, "query")

    # ---- what it belongs to --------------------------------------------------------------------------------

    def open(
        self,
        spreads: Sequence[DistributedProgram],
        shards: int | None,
        default: int,
        sources: Sequence[ToldSource | None] = (),
    ) -> int:
        """Takes possession of the checkpoint; says into how many shards state is cut there.

        `sources` are the texts of the programs, which are kept if all of them are known.
        """
        programs = [program_of(spread.compiled, spread.world) for spread in spreads]
        self.programs = digest([compared(program) for program in programs])
        layouts = [layout_of(spread) for spread in spreads]
        self._world = {
            f"{name}{f' of program {n + 1}' if len(spreads) > 1 else ''}": told
            for n, spread in enumerate(spreads)
            for name, told in world_of(spread.world).items()
        }
        if QUERY not in self._files.names(self._folder):
            self._see_that_nothing_is_here()
            self._files.make(f"{self._folder}/progress")
            chosen = shards or default
            self.query = uuid4().hex
            content = {"query": self.query, "shards": chosen, "programs": programs, "layouts": layouts}
            self._put(QUERY, "query", content | _with_sources(sources))
            return chosen
        told = self._get(QUERY, "query")
        if len(programs) != len(told["programs"]):
            raise WrongCheckpoint(
                f"the checkpoint is of {len(told['programs'])} programs, and these are {len(programs)}"
            )
        for theirs, ours in zip(told["programs"], programs, strict=True):
            try:
                compare(theirs, ours, "checkpoint")
            except AnotherProgram as error:
                raise WrongCheckpoint(
                    f"{error}\nthe checkpoint stays as it is, with the state of all rules: change it to the new "
                    f"program by `ephemera change {self.root} PROGRAM`, start that with another checkpoint, or bring "
                    "the old one back"
                ) from None
        if told["layouts"] != layouts:
            raise WrongCheckpoint(
                "the rules are those of the checkpoint, and this version would spread their state in another way over "
                "the shards; go on with the version that wrote it, or begin anew with another checkpoint"
            )
        self.query = told["query"]
        self._read_version(told)
        if SOURCES not in told and (more := _with_sources(sources)):
            self._put(QUERY, "query", told | more)
        batches = self._batches()
        if batches:
            before = self._progress(batches[-1])
            warn_of_changes(before["world"], self._world, f"batch {batches[-1]}")
        return int(told["shards"])

    def forms(self) -> list[list[str]] | None:
        """How its programs are planned, by the names of rewrites, if that was chosen by a change."""
        return self.content.get(FORMS) if self.is_there else None

    def _read_version(self, told: Mapping[str, Any]) -> None:
        self.version = told.get(VERSION, 0)
        changed = told.get(CHANGED)
        if changed is not None:
            standings = {int(number): read_standing(one) for number, one in changed["standings"].items()}
            self._changed = ChangedAt(int(changed["batch"]), standings)

    def _see_that_nothing_is_here(self) -> None:
        """A checkpoint without the file that says whose it is must be a new one."""
        for folder in _OURS:
            names = [name for name in self._files.names(f"{self._folder}/{folder}") if not name.startswith(".")]
            if names:
                raise Broken(
                    f"{self._folder}/{QUERY} is missing, though there is {folder}/{names[0]} beside it: "
                    f"whose checkpoint it is cannot be told; {_WAY_OUT}"
                )

    # ---- another version of it -----------------------------------------------------------------------------

    def see_that_all_is_done(self, spreads: Sequence[DistributedProgram]) -> None:
        """Refuses to change what a batch is on the way with that was begun, and has not been finished.

        One that Spark has planned, and that no shard has begun, is done by whatever version comes then. A shard writes
        its state before anything of the batch goes on, so without any such state nobody has seen anything of it.
        """
        if self._has_past and self._past() is None:
            raise WrongCheckpoint(
                f"the past of the checkpoint `{self.root}` has not been read to its end: start once more as before, "
                "and change the program then"
            )
        past = self._past()
        planned = (int(past["base"]) if past is not None else 0) + max(self._batches(f"{LIVE_LOG}/offsets"), default=-1)
        if planned <= self.last:
            return
        levels = max((spread.stages.levels for spread in spreads), default=0)
        folder = f"{self._folder}/{state_folder(self.version)}"
        shards = [f"{folder}/{level}-{place}" for level in range(levels) for place in range(spreads[0].places)]
        if not levels or any(f"{planned}.segment" in self._files.names(shard) for shard in shards):
            raise WrongCheckpoint(
                f"batch {planned} of the checkpoint `{self.root}` was begun by the program that it has, and was not "
                "finished: start that program once more, with `--trigger once` if you like, and change it then"
            )

    def go_on_with(
        self, content: Mapping[str, Any], standings: Standings, spreads: Sequence[DistributedProgram]
    ) -> None:
        """Another version counts from now on; the state of that before, of some programs, is of no use any more."""
        before = self.version
        told = {str(number): standing.told() for number, standing in standings.items()}
        changed = {VERSION: before + 1, CHANGED: {"batch": self.last, "standings": told}}
        whole = {**self.content, **content, **changed}
        mark("change counts")
        self._put(QUERY, "query", whole)
        self._read_version(whole)
        self._known = {}
        mark("change tidy")
        self.clear_state(before, spreads)

    def clear_state(self, version: int, spreads: Sequence[DistributedProgram]) -> None:
        """Removes what a version has left, or what somebody who was killed has written of one."""
        levels = max((spread.stages.levels for spread in spreads), default=0)
        for level in range(levels):
            for place in range(spreads[0].places):
                folder = f"{self._folder}/{state_folder(version)}/{level}-{place}"
                for name in self._files.names(folder):
                    self._files.remove(f"{folder}/{name}")

    # ---- the past before what is read live -----------------------------------------------------------------

    def begin_past(self) -> bool:
        """The past is read first; False if it has been, by an earlier start."""
        if self._past() is not None or (self._has_past and self.last >= 0):
            return False
        if not self._has_past and (self._batches() or self._batches(f"{LIVE_LOG}/offsets")):
            raise WrongCheckpoint(
                f"the checkpoint `{self.root}` was begun without a past, and goes on without one: leave out `--then`, "
                "and name with `--input` what is read live; or begin anew with another checkpoint"
            )
        self.log = PAST_LOG
        return True

    def begin_live(self, *, has_read: bool = False) -> None:
        """What is read live follows: the past, if there is one, which this start may have read.

        A past is one batch. If that was committed all of it has been read, whatever lies there by now.
        """
        found = self._past()
        if found is None and self._has_past and self.last < 0 and not has_read:
            raise WrongCheckpoint(
                f"the past of the checkpoint `{self.root}` has not been read to its end: start once more as before, "
                "by `--input PAST --then …`, or begin anew with another checkpoint"
            )
        if found is None and (self._has_past or has_read):
            found = {"query": self.query, "base": self.last + 1}
            if self.last < 0 and self.positions_of(0) is not None:  # a past that was empty took no batch
                self._files.remove(f"{self._folder}/{POSITIONS}/0.json")
            mark("past ends")
            self._put(PAST, "past", found)
        self.base = 0 if found is None else int(found["base"])

    @property
    def _has_past(self) -> bool:
        return bool(self._batches(f"{PAST_LOG}/offsets"))

    def _past(self) -> dict[str, Any] | None:
        return self._get(PAST, "past") if PAST in self._files.names(self._folder) else None

    # ---- batches -------------------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The last batch that was committed; -1 if none was."""
        return max(self._batches(), default=-1)

    @property
    def planned(self) -> int:
        """The last batch that Spark has begun, whose input it then knows; -1 if it has begun none."""
        return self.base + max(self._batches(f"{self.log}/offsets"), default=-1)

    def before(self, batch: int) -> Standings:
        """Where the programs stood before a batch."""
        later = [] if self._has_begun else [number for number in self._batches() if number > batch]
        self._has_begun = True
        if later:
            raise Broken(
                f"Spark would begin batch {batch}, and {self._folder}/progress has batch {later[-1]} already: "
                f"files of {self.root}/spark are missing, or older than the others; {_WAY_OUT}"
            )
        if batch == 0:
            return {}
        if self._changed is not None and self._changed.batch == batch - 1:
            self._known[batch - 1] = self._changed.standings
        if batch - 1 not in self._known:
            told = self._progress(batch - 1)["standings"]
            self._known[batch - 1] = {int(number): read_standing(one) for number, one in told.items()}
        found = self._known[batch - 1]
        return {n: one.behind_the_past() for n, one in found.items()} if batch == self.base else found

    def after_last(self) -> Standings:
        """Where the programs stood after the last batch that was committed."""
        last = self.last
        if last < 0:
            return {}
        if self._changed is not None and self._changed.batch == last:
            return self._changed.standings
        told = self._progress(last)["standings"]
        return {int(number): read_standing(one) for number, one in told.items()}

    def was_before_a_change(self, batch: int) -> bool:
        """Whether a batch was done by a version before this one: then all of it is done, whoever begins it again."""
        return self._changed is not None and batch <= self._changed.batch

    @property
    def standings(self) -> Standings:
        """Where the programs stand after the last batch that was committed here; nowhere before the first."""
        return self._known[max(self._known)] if self._known else {}

    def commit(self, batch: int, standings: Standings) -> None:
        """Where they stand after a batch."""
        told = {str(number): standing.told() for number, standing in standings.items()}
        content = {"query": self.query, "batch": batch, "standings": told, "world": self._world}
        self._put(_progress(batch), "progress", content)
        self._known = {batch - 1: self._known.get(batch - 1, {}), batch: standings}
        mark("ledger tidy")
        for number in self._batches():
            if number < batch - 1:
                self._files.remove(f"{self._folder}/{_progress(number)}")
        for number in self._batches(CLOCK) if self._has_clock else ():
            if number < batch:
                self._files.remove(f"{self._folder}/{CLOCK}/{number}.json")
        for number in self._batches(POSITIONS) if self._has_positions else ():
            if number < batch - 1:
                self._files.remove(f"{self._folder}/{POSITIONS}/{number}.json")
        mark("batch done")

    def time_of(self, batch: int) -> int | None:
        """What time it was when a batch was first begun, if it was."""
        self._has_clock = True
        self._files.make(f"{self._folder}/{CLOCK}")
        if batch not in self._batches(CLOCK):
            return None
        return int(self._of_batch(f"{CLOCK}/{batch}.json", "time", batch)["now"])

    def note_time(self, batch: int, now: int) -> None:
        """What time it is for a batch."""
        content = {"query": self.query, "batch": batch, "now": now}
        data = seal("time", FORMAT, content)
        self._files.put(f"{self._folder}/{CLOCK}/{batch}.json", [data], lambda _: None)

    def positions_of(self, batch: int) -> dict[str, Any] | None:
        """Between which positions of systems a batch lies, if that is known."""
        if not self._has_positions:
            self._files.make(f"{self._folder}/{POSITIONS}")
            self._has_positions = True
        if batch not in self._batches(POSITIONS):
            return None
        found: dict[str, Any] = self._of_batch(f"{POSITIONS}/{batch}.json", "positions", batch)["positions"]
        return found

    def note_positions(self, batch: int, positions: Mapping[str, Any]) -> None:
        """Between which positions a batch is to lie."""
        content = {"query": self.query, "batch": batch, "positions": positions}
        data = seal("positions", FORMAT, content)
        self._files.put(f"{self._folder}/{POSITIONS}/{batch}.json", [data], lambda step: mark(f"positions {step}"))

    def _batches(self, folder: str = "progress") -> list[int]:
        """The batches of which there is progress."""
        names = [name.removesuffix(".json") for name in self._files.names(f"{self._folder}/{folder}")]
        return sorted(int(name) for name in names if name.isdigit())

    def _progress(self, batch: int) -> dict[str, Any]:
        return self._of_batch(_progress(batch), "progress", batch)

    def _of_batch(self, name: str, kind: str, batch: int) -> dict[str, Any]:
        told = self._get(name, kind)
        if (told["query"], told["batch"]) != (self.query, batch):
            raise Broken(
                f"{self._folder}/{name} is of batch {told['batch']} of query {told['query']}; "
                f"it should be of batch {batch} of query {self.query}; {_WAY_OUT}"
            )
        return told

    def _get(self, name: str, kind: str) -> dict[str, Any]:
        path = f"{self._folder}/{name}"
        try:
            data = bytes(self._files.read(path))
        except OSError as error:
            raise Broken(f"the checkpoint has no readable {name}: {error}; {_WAY_OUT}") from None
        return unseal(data, kind, FORMAT, path, _WAY_OUT)

    def _put(self, name: str, kind: str, content: Mapping[str, Any]) -> None:
        self._files.put(f"{self._folder}/{name}", [seal(kind, FORMAT, content)], lambda step: mark(f"ledger {step}"))


def state_folder(version: int) -> str:
    """Where a version of a query has its state."""
    return f"state-{version}" if version else "state"


def _with_sources(sources: Sequence[ToldSource | None]) -> dict[str, Any]:
    known = [one for one in sources if one is not None]
    return {SOURCES: known} if known and len(known) == len(sources) else {}


def _progress(batch: int) -> str:
    return f"progress/{batch}.json"


def layout_of(spread: DistributedProgram) -> str:
    """Which rules have their state together, and by which attributes it is cut."""
    names = spread.plan.rewritten.names.histories
    groups = zip(spread.group_names, spread.stages.groups, strict=True)
    return digest({name: [g.level, {names[query]: cut for query, cut in g.cuts.items()}] for name, g in groups})
