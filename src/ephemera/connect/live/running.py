"""This module is a live run in one process at work: it reads, has engines evaluate, commits, and writes.

What was under way in a crash is done again by the next start, from the last commit.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ephemera.base.errors import EphemeraError
from ephemera.connect.live.checkpoint import Checkpoint, Commit, ToldProgram
from ephemera.connect.live.meter import Meter
from ephemera.connect.live.partitions import Partitions
from ephemera.connect.live.past import ReadPast, without_known
from ephemera.connect.live.past_told import ALREADY
from ephemera.connect.live.reads import read_once
from ephemera.connect.live.target_names import TargetName, target_names
from ephemera.connect.systems.live import (
    Arrived,
    LiveSource,
    MayBeAway,
    OpenLive,
    OpenTarget,
    check_last,
)
from ephemera.connect.systems.source_names import Identified, Known, changes, known_again, source_key
from ephemera.connect.written_places import Written
from ephemera.engine.engine import Found
from ephemera.engine.hosts.batch import answer_parts
from ephemera.engine.state.snapshot import Snapshot, WrongSnapshot
from ephemera.engine.time.event_time import Watermarks
from ephemera.engine.time.processing_time import passing
from ephemera.formats.answers import AnswerBatch, AnswerForm
from ephemera.formats.decode import Decoder, Noticed, decoders_of
from ephemera.formats.decode_csv import BadFile
from ephemera.formats.decoded import Decoded
from ephemera.formats.encode_typed_arrow import Counting
from ephemera.formats.reading import Keys

if TYPE_CHECKING:
    from ephemera.connect.live.run import LiveRun
    from ephemera.engine.hosts.live_engine import LiveEngine

_PAUSE = 0.05
_LETTERS, _MESSAGES, _ANSWERS = "dead letters", "messages", "answers for "
"""What targets are called in a checkpoint: the two of the run itself, and what stands before the names of others."""


class Running:
    """A run at work."""

    def __init__(self, run: LiveRun, stack: ExitStack) -> None:
        self._run = run
        self._reads = read_once(run.reads, len(run.programs))
        self._keys = tuple(self._reads)
        self._engines = [one.engine for one in run.programs]
        for engine in self._engines:
            engine.is_delivered = engine.is_delivered or run.messages is not None
        compiled = [engine.compiled for engine in self._engines]
        self._noticed = [Noticed(Keys(one.physical)) for one in compiled]
        self._offers = [0] * len(compiled)
        self._decoders: list[list[Decoder | None]] = [
            decoders_of(compiled, self._noticed, read.readers, read.source.only) for read in self._reads.values()
        ]
        now = passing()
        self._partitions = [Partitions(engine.catalogue, engine.sources, now) for engine in self._engines]
        self._past: ReadPast | None = None
        self._known_events = [0] * len(compiled)
        self._form: AnswerForm | None = None
        self._loads: dict[str, list[bytes]] = defaultdict(list)
        self._snapshots: list[Snapshot | None] = [None] * len(compiled)
        self._troubles: dict[int, str] = {}
        """What has been told of sources that do not answer, by their numbers."""
        self._committed = 0.0
        self._is_dirty = False
        self._number = 0
        self._meter = Meter(run.watch) if run.watch is not None else None
        self._checkpoint = Checkpoint(run.checkpoint) if run.checkpoint is not None else None
        last = self._checkpoint.last() if self._checkpoint is not None else None
        known = self._known(last)
        self._targets = self._open_targets(last, stack)
        if last is not None:
            self._go_on(last, known)
        self._sources: list[OpenLive] = []
        self._identities: dict[str, str | None] = {}
        for key, read in self._reads.items():
            opened = read.source.open_live(known[key].position if key in known else None)
            stack.callback(opened.close)
            self._sources.append(opened)
            self._is_dirty = self._is_dirty or key not in known  # where reading begins is soon in the checkpoint
            if self._checkpoint is not None:
                self._identities[key] = opened.identity() if isinstance(opened, Identified) else None

    def begin(self, stop: Callable[[], bool]) -> None:
        """Reads the past, if there is one that has not been read; sources are open, so that nothing falls between."""
        where = f"the checkpoint `{self._run.checkpoint}`"
        awaits = any(own.awaits_past for own in self._partitions)
        if not self._run.past:
            if awaits:
                raise EphemeraError(
                    f"the past of {where} has not been read to its end: start once more as before, by `--input PAST "
                    "--then …`, or begin anew with another checkpoint"
                )
            return
        if any(own.past is not None for own in self._partitions):
            self._run.tell(ALREADY)
            return
        if self._run.totals.went_on and not awaits:
            raise EphemeraError(
                f"{where} was begun without a past, and goes on without one: leave out `--then`, and name with "
                "`--input` what is read live; or begin anew with another checkpoint"
            )
        if not awaits and self._checkpoint is not None:  # where sources begin is kept, however long this takes
            for own in self._partitions:
                own.awaits_past = True
            self._is_dirty = True
            self.commit()
        self._read_past(stop)
        self._is_dirty = True
        self.commit()
        self._run.tell_past()

    def _read_past(self, stop: Callable[[], bool]) -> None:
        lenient = any(program.lenient for program in self._run.programs)
        places = (self._run.past, self._noticed, self._give, self._forget)
        self._past = ReadPast(self._engines, *places, lenient=lenient, stop=stop, heard=self._hear_past)
        bounds = self._past.read()
        if self._meter is not None:
            self._meter.end_round()
        for partitions, own in zip(self._partitions, bounds, strict=True):
            partitions.behind_the_past(own, passing())

    def _hear_past(self, found: Sequence[Decoded]) -> None:
        if self._meter is not None:
            for decoded, engine in zip(found, self._engines, strict=True):
                self._meter.read(0, decoded, engine.source_of)
            self._meter.end_round()

    def _forget(self) -> None:
        """Nothing has come of the past yet."""
        self._loads.clear()
        self._form = None
        self._run.totals.answers = self._run.totals.letters = 0
        self._meter = Meter(self._run.watch) if self._run.watch is not None else None

    def _known(self, last: Commit | None) -> Mapping[str, Known]:
        """What the checkpoint knows of the sources; tells of those that are new, or not read any more."""
        if last is None:
            return {}
        sources = {key: read.source for key, read in self._reads.items()}
        found = known_again(sources, last.known)
        for told in changes(sources, last.known, found, str(self._run.checkpoint)):
            self._run.tell(told)
        return found

    def _open_targets(self, last: Commit | None, stack: ExitStack) -> dict[str, tuple[Written, OpenTarget]]:
        identity = self._checkpoint.identity if self._checkpoint is not None else _passing_identity()
        names = target_names([written.target for written in self._run.writes])
        wanted = {f"{_ANSWERS}{name}": (name, written) for name, written in zip(names, self._run.writes, strict=True)}
        if self._run.messages is not None:
            wanted[_MESSAGES] = TargetName(_MESSAGES), Written(self._run.messages)
        if self._run.dead_letters is not None:
            wanted[_LETTERS] = TargetName(_LETTERS), Written(self._run.dead_letters, frozenset())
        stored = {} if last is None else last.answers
        left = next((name for name, load in stored.items() if load and name not in wanted), None)
        if left is not None:
            raise EphemeraError(
                f"the checkpoint `{self._run.checkpoint}` still holds {left}, of its last commit, and this run writes "
                "them nowhere; start once more as before, by `--trigger once`, or begin anew in another folder"
            )
        found: dict[str, tuple[Written, OpenTarget]] = {}
        for known, (name, written) in wanted.items():
            position = last.targets.get(known) if last is not None else None
            opened = written.target.open_target(name.identity(identity), position)
            stack.callback(opened.close)
            if self._run.checkpoint is not None:
                check_last(str(name), opened, last.number if last is not None else 0, self._run.checkpoint)
            found[known] = written, opened
        return found

    def _go_on(self, last: Commit, known: Mapping[str, Known]) -> None:
        """Stands where the last commit was, whose answers may not have been put."""
        if len(last.engines) != len(self._engines):
            raise EphemeraError(
                f"the checkpoint `{self._run.checkpoint}` is of {len(last.engines)} programs, and this run has "
                f"{len(self._engines)}; name the same ones, or begin anew in another folder"
            )
        for engine, snapshot in zip(self._engines, last.engines, strict=True):
            try:
                engine.restore(snapshot)
            except WrongSnapshot as error:
                folder = self._run.checkpoint
                raise WrongSnapshot(
                    f"{error}; or change what it is of, by `ephemera change {folder} PROGRAM`"
                ) from None
        for own, stored in zip(self._partitions, last.partitions, strict=True):
            own.restore(stored, lambda name: self._partition_now(name, known))
        self._snapshots = list(last.engines)
        self._number = last.number
        self._run.totals.went_on = True
        for name, load in last.answers.items():
            if load:
                self._targets[name][1].put(load, last.number)

    def _partition_now(self, name: str, known: Mapping[str, Known]) -> str | None:
        """What a partition of the checkpoint is called now, if its source is still read.

        Earlier versions counted sources in the order in which they were named.
        """
        before, _, partition = name.rpartition("/")
        if before.isdigit():
            keys = {str(number): source_key(read.source) for number, read in enumerate(self._run.reads)}
        else:
            keys = {one.key: key for key, one in known.items()}
        return f"{keys[before]}/{partition}" if before in keys else None

    def go_on_with(self, number: int) -> None:
        """An engine runs another program now: that is made safe at once, so that a crash finds it so."""
        engine = self._engines[number]
        self._noticed[number] = Noticed(Keys(engine.compiled.physical))
        self._offers[number] = 0
        for read, decoders in zip(self._reads.values(), self._decoders, strict=True):
            before = decoders[number]
            own = decoders_of([engine.compiled] * len(decoders), self._noticed, read.readers, read.source.only)[number]
            if before is not None and own is not None:
                own.has_instants = before.has_instants
            decoders[number] = own
        self._partitions[number].go_on(engine.catalogue, engine.sources)
        self._snapshots[number] = None
        self._form = None
        self._is_dirty = True
        self.commit()

    def has_caught_up(self) -> bool:
        """Whether all that was there when the run began has been read."""
        return not any(source.behind for source in self._sources)

    # ---- round by round ------------------------------------------------------------------------------------

    def round(self) -> None:
        """Reads what has come, and gives it to the engines; commits if it is time."""
        came: list[tuple[int, Arrived]] = []
        for k, source in enumerate(self._sources):
            came += [(k, one) for one in source.poll(_PAUSE / len(self._sources) if not came else 0.0)]
            if isinstance(source, MayBeAway):
                self._tell_of(k, source.trouble)
        behind = {f"{key}/{p}" for key, source in zip(self._reads, self._sources, strict=True) for p in source.behind}
        found = [self._through(number, came, behind) for number in range(len(self._engines))]
        if self._meter is not None:
            self._meter.end_round()
        self._is_dirty = self._is_dirty or bool(came)
        self._give(found)
        if self._is_dirty and time.monotonic() - self._committed >= self._run.pace:
            self.commit()
        if self._meter is not None and self._meter.is_due():
            self._report(self._meter)

    def _report(self, meter: Meter) -> None:
        """Tells who watches what has been done so far."""
        meter.tell(self._run.totals.commits, self._engines, self._partitions)

    def _tell_of(self, number: int, trouble: str | None) -> None:
        """Says once that a system does not answer, and once that it does again."""
        told = self._troubles.pop(number, None)
        if trouble is not None:
            self._troubles[number] = trouble
            if told is None:
                self._run.tell(trouble)
        elif told is not None:
            self._run.tell(f"{self._source(number).name} answers again")

    def _source(self, number: int) -> LiveSource:
        return self._reads[self._keys[number]].source

    def _through(self, number: int, came: Sequence[tuple[int, Arrived]], behind: set[str]) -> Found:
        now = passing()
        partitions = self._partitions[number]
        decoded: list[tuple[Decoded, Watermarks]] = []
        known = 0
        for piece, (k, one) in enumerate(came):
            decoder = self._decoders[k][number]
            if decoder is None:
                continue
            found = self._decoded(k, decoder, one)
            labels = [part.label for part in found.parts]
            marks = partitions.heard(f"{self._keys[k]}/{one.partition}", labels, now)
            new = without_known(found, self._engines[number], partitions.past or {})
            known += sum(map(len, found.parts)) - sum(map(len, new.parts))
            decoded.append((new, marks))
            if self._meter is not None:
                self._meter.read(piece, found, marks.source)
        self._known_events[number] += known
        self._run.totals.known = max(self._known_events)
        noticed, program = self._noticed[number], self._run.programs[number]
        if len(noticed.offers) > self._offers[number]:
            self._offers[number] = len(noticed.offers)
            noticed.check(program.engine.compiled, lenient=program.lenient)
        return program.engine.exchange(decoded, lambda: partitions.reached(behind, now))

    def _decoded(self, source: int, decoder: Decoder, one: Arrived) -> Decoded:
        try:
            found = decoder.decode(one.batch)
        except EphemeraError:
            raise
        except ValueError as error:
            raise BadFile(f"cannot read {self._source(source).name}: {error}") from None
        if one.place is not None and found.bad:
            found.place_bad(one.place)
        return found

    def _give(self, found: Sequence[Found]) -> None:
        """What is certain, and what could not be used, to wait for the next commit."""
        parts, rules = [], []
        for k, (one, engine) in enumerate(zip(found, self._engines, strict=True)):
            for part, rule in answer_parts(one, engine.compiled.rules, k):
                parts.append(part)
                rules.append(rule)
            self._bury(k, engine)
        if not parts:
            return
        self._is_dirty = True
        self._form = self._form or self._answer_form()
        every = AnswerBatch(self._form, parts, rules)
        self._run.totals.answers += len(every)
        if self._meter is not None:
            self._meter.gave(parts)
        for name, (written, target) in self._targets.items():
            batch = written.chosen(every)
            if len(batch):
                self._loads[name].append(target.encode(batch))

    def _bury(self, number: int, engine: LiveEngine) -> None:
        dead = engine.take_dead_letters()
        if not (engine.bad or engine.late or dead):
            return
        letters = self._run.letters(number, engine.bad, engine.late, dead)
        self._run.totals.letters += len(engine.bad) + len(engine.late) + len(dead)
        if self._meter is not None:
            self._meter.buried(bad=len(engine.bad), late=len(engine.late), dead=len(dead))
        engine.bad.clear()
        engine.late.clear()
        if self._run.dead_letters is not None:
            text = "".join(json.dumps(one, ensure_ascii=False, default=str) + "\n" for one in letters)
            self._loads[_LETTERS].append(text.encode(errors="replace"))
            self._is_dirty = True

    def _answer_form(self) -> AnswerForm:
        counting: list[Counting] = []
        for k, engine in enumerate(self._engines):
            past = [one.decoders for one in self._past.inputs] if self._past is not None else []
            own = [decoders[k] for decoders in (*self._decoders, *past)]
            instants = any(decoder is not None and decoder.has_instants for decoder in own)
            counting.append(Counting(engine.writes_numbers, engine.writes_numbers and not instants))
        programs = tuple(engine.compiled.rules for engine in self._engines)
        days = tuple(tuple(d for own in p.world.calendars.values() for d in own) for p in self._run.programs)
        emit = frozenset(name for engine in self._engines for name in engine.compiled.physical.emit)
        return AnswerForm(programs, tuple(counting), days, emit)

    def finish(self) -> None:
        """The run ends in good order; the input may go on."""
        self.commit()
        if self._checkpoint is not None:
            self._checkpoint.settle({name: target.position for name, (_, target) in self._targets.items()})
        if self._meter is not None:
            self._report(self._meter)

    def commit(self) -> None:
        """Makes safe what has come so far and what came of it, puts the answers, and tells the sources."""
        if not self._is_dirty:
            return
        self._number += 1
        loads = {name: b"".join(loads) for name, loads in self._loads.items()}
        if self._checkpoint is not None:
            taken = [engine.snapshot(since) for engine, since in zip(self._engines, self._snapshots, strict=True)]
            reads = zip(self._reads.items(), self._sources, strict=True)
            self._checkpoint.store(
                Commit(
                    self._number,
                    taken,
                    [own.checkpoint() for own in self._partitions],
                    [
                        Known(key, opened.position, read.source.name, self._identities[key])
                        for (key, read), opened in reads
                    ],
                    {name: target.position for name, (_, target) in self._targets.items()},
                    loads,
                    told_programs(self._engines),
                )
            )
            self._snapshots = list(taken)
        for name, load in loads.items():
            if load:
                self._targets[name][1].put(load, self._number)
        for source in self._sources:
            source.confirm()
        self._loads.clear()
        self._is_dirty = False
        self._committed = time.monotonic()
        self._run.totals.commits += 1


def told_programs(engines: Sequence[LiveEngine]) -> list[ToldProgram] | None:
    """What engines run, if the text of all of it is known."""
    texts = [engine.written for engine in engines]
    if any(text is None for text in texts):
        return None
    return [
        {"path": text.path, "text": text.text, "emit": sorted(engine.compiled.physical.emit)}
        for text, engine in zip(texts, engines, strict=True)
        if text is not None
    ]


def _passing_identity() -> str:
    """A name for a run that nobody goes on with."""
    from uuid import uuid4  # noqa: PLC0415 - only runs without a checkpoint need it

    return uuid4().hex[:16]
