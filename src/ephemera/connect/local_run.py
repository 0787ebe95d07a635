"""This module runs programs over a history in one process, from sources to a sink, in a limited memory.

Events come in batches, are decoded by columns, and go through the engines in slices of time; answers leave step by
step, sorted, since all that happens by a bound is known when the bound is reached. Input that is in the order of time,
or nearly so, is taken as it comes. If it turns out not to be, everything that was written is dropped, and the run
begins again with the events sorted on disk first. Nothing counts before the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ephemera.base.errors import EphemeraError
from ephemera.base.scratch import scratch
from ephemera.base.time import SECOND
from ephemera.connect.external_sort import MEMORY, ExternalSort
from ephemera.connect.sink import OpenSink, Sink
from ephemera.connect.source import Source
from ephemera.connect.time_order import WINDOW, Input, OutOfOrder, as_they_come
from ephemera.engine.driver import SLICE
from ephemera.engine.engine import Engine, Found
from ephemera.engine.hosts.batch import answer_parts, span
from ephemera.engine.lacking import Never, never
from ephemera.engine.observe import planned_for
from ephemera.formats.answer_order import AnswerPart
from ephemera.formats.answers import AnswerBatch, AnswerForm
from ephemera.formats.decode import Noticed, decoders_of
from ephemera.formats.decoded import Decoded
from ephemera.formats.encode_typed_arrow import Counting
from ephemera.formats.json_events import BadEvent, bad_of_close
from ephemera.formats.reading import Keys
from ephemera.kernels.columns import Ints
from ephemera.kernels.event_columns import END, Events, size_of
from ephemera.kernels.history import FAR
from ephemera.physical.plan import Compiled, PhysicalPlan
from ephemera.rules.outcome import DeadLetter, World

MANY = 1 << 20
"""So many answers of one step are too many: the next takes fewer events."""
FINE = 64
"""Where it is measured what is kept, no fewer events are taken at a time."""

Bury = Callable[[int, Sequence[BadEvent], Sequence[DeadLetter]], None]
"""Takes what could not be used, with the number of the program that could not."""


@dataclass(slots=True)
class ProgramRun:
    """One program of a run: what it runs on, and what came of it."""

    compiled: Compiled
    world: World
    read: int = 0
    """How many events came in, with those that are bad."""
    bad: int = 0
    undefined: int = 0
    """Heads that had no value."""
    answers: Counter[str] = field(default_factory=Counter)
    """How many there were, by label."""
    as_numbers: bool = True
    """Whether times are numbers, as in the input."""
    never: Never = field(default_factory=Never)
    said: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    peaks: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    """The most tuples that each history has held after a step, and for how long each counts."""
    events: Counter[str] = field(default_factory=Counter)
    """How many good ones came, by label."""
    span: int = 0
    """From the first end to the last."""
    examined: dict[str, int] = field(default_factory=dict)
    """How many pairs each rule has looked at."""
    by_rule: dict[str, int] = field(default_factory=dict)
    """Where that is measured: how many answers each rule has given, and each stored join tuples."""
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where that is measured: the most tuples that each history has held after a step, and their bytes."""


class LetterSink:
    """Takes what could not be used; here it is only counted."""

    def bury(self, program: int, bad: Sequence[BadEvent], undefined: Sequence[DeadLetter]) -> None:
        """Some letters of a program."""

    def commit(self) -> None:
        """All of them count."""

    def abort(self) -> None:
        """None of them counts."""


class RunFailed(EphemeraError):
    """A program that could not go on: its number, and why."""

    def __init__(self, program: int, error: EphemeraError) -> None:
        super().__init__(str(error))
        self.program = program
        self.error = error


def run_local(  # noqa: PLR0913 - what a run needs, most of it optional
    programs: Sequence[ProgramRun],
    sources: Sequence[Source],
    sink: Sink,
    letters: Callable[[], LetterSink] = LetterSink,
    *,
    readers: Sequence[Mapping[int, str | None] | None] | None = None,
    lenient: bool = False,
    is_measured: bool = False,
    memory: int = MEMORY,
    window: int = WINDOW,
    progress: Callable[[float], None] = lambda _part: None,
) -> list[ProgramRun]:
    """All that programs derive from what sources give, to a sink; what could not be used, to the dead letters.

    `readers` says for each source which programs read it, and as which type if its events do not name theirs. Events
    wait in a `window` of so many bytes for earlier ones; where that does not suffice they are sorted, of which so much
    `memory` holds a part and a temporary folder the rest.
    """
    given = list(zip(sources, readers or [None] * len(sources), strict=True))
    attempt = partial(
        _Attempt, programs, given, sink, letters, lenient=lenient, is_measured=is_measured, progress=progress
    )
    if all(source.can_reopen for source in sources):
        try:
            return attempt().run(lambda run: as_they_come(run.inputs, run.note, window))
        except OutOfOrder:
            pass
    with scratch("sort") as folder:
        return attempt().run(lambda run: run.in_order(ExternalSort(folder, len(programs), memory)))


def _fine_step(plan: PhysicalPlan) -> int:
    """How many events are taken at a time if what is kept is to be seen while it is: a part of the shortest time."""
    reaches = [h.reach for lane in plan.lanes.plans.values() for h in lane.histories.values() if h.reach]
    rate = sum(plan.rewritten.statistics.rates.values())
    return max(FINE, min(SLICE, int(rate * min(reaches) / SECOND / 16))) if reaches and rate else SLICE


class _Attempt:
    """A run over the whole input, which succeeds or leaves nothing."""

    def __init__(  # noqa: PLR0913 - what a run needs
        self,
        programs: Sequence[ProgramRun],
        sources: Sequence[tuple[Source, Mapping[int, str | None] | None]],
        sink: Sink,
        letters: Callable[[], LetterSink],
        *,
        lenient: bool,
        is_measured: bool,
        progress: Callable[[float], None],
    ) -> None:
        self._programs = [ProgramRun(one.compiled, one.world) for one in programs]
        self._sink, self._letters = sink, letters
        self._lenient = lenient
        self._is_measured = is_measured
        self._progress = progress
        self._noticed = [Noticed(Keys(one.compiled.physical)) for one in programs]
        self._assumed = [one.compiled.rules.resolved.catalogue.local.assumed for one in programs]
        compiled = [one.compiled for one in programs]
        self.inputs = [
            Input(source, decoders_of(compiled, self._noticed, readers, source.only)) for source, readers in sources
        ]
        self._engines: list[Engine] = []
        self._came: list[set[str]] = [set() for _ in programs]
        self._earliest = [FAR] * len(programs)
        self._latest = [-FAR] * len(programs)
        self._loaded: list[Ints] = []
        self._told: set[int] = set()
        """The letters that have been told, as hashes."""
        self._most = self._enough = SLICE
        self._bury: LetterSink = LetterSink()
        self._out: OpenSink | None = None
        self._form: AnswerForm | None = None

    def run(self, slices: Callable[[_Attempt], Iterable[tuple[int, list[list[Events]]]]]) -> list[ProgramRun]:
        """Through the events, in slices of time."""
        with ExitStack() as stack:
            for one in self.inputs:
                stack.callback(one.close)
            self._bury = self._letters()
            stack.callback(self._bury.abort)
            self._out = self._sink.open()
            stack.callback(self._out.abort)
            self._progress(0.0)
            self._through(slices(self))
            if self._form is None:  # there was no answer, and that is written, too
                self._out.write(AnswerBatch(self._answer_form(), (), ()))
            self._tell()
            self._bury.commit()
            self._out.commit()
            stack.pop_all()
        self._progress(1.0)
        return self._programs

    def in_order(self, sort: ExternalSort) -> Iterator[tuple[int, list[list[Events]]]]:
        """The events sorted first."""
        for one in self.inputs:
            while (found := one.read()) is not None:
                self.note(found)
                sort.add([decoded.parts for decoded in found])
        yield from sort.slices(self._enough)

    def note(self, found: Sequence[Decoded]) -> None:
        """What is told of a batch besides its events."""
        for k, (program, decoded) in enumerate(zip(self._programs, found, strict=True)):
            program.read += decoded.count
            if k == 0:
                self._progress(sum(one.part for one in self.inputs) / len(self.inputs))
            if decoded.bad:
                program.bad += len(decoded.bad)
                self._came[k].update(bad.label for _, bad in decoded.bad if bad.label is not None)
                self._bury.bury(k, decoded.bad_events, ())
            if (ends := decoded.ends) is not None:
                self._earliest[k] = min(self._earliest[k], ends[0])
                self._latest[k] = max(self._latest[k], ends[1])

    # ---- through the engines -------------------------------------------------------------------------------

    def _through(self, slices: Iterable[tuple[int, list[list[Events]]]]) -> None:
        loaded = size = 0
        files = sum(len(getattr(one.source, "files", (one.source.name,))) for one in self.inputs)
        for number, (first, parts) in enumerate(slices):
            if number == 0 and len(self._noticed[0].offers) == files:  # all that offers columns has been seen
                self._check_columns()
            if number == 0:
                self._start(parts)
            if loaded >= self._enough or size >= WINDOW:
                self._step(first - 1)
                loaded = size = 0
            for program, engine, own in zip(self._programs, self._engines, parts, strict=True):
                engine.load(own)
                for part in own:
                    program.events[part.label] += len(part)
            ends = [part.batch[END] for own in parts for part in own]
            self._loaded += ends
            loaded += sum(map(len, ends))
            size += sum(size_of(part) for own in parts for part in own)
        self._check_columns()
        if not self._engines:
            self._start([()] * len(self._programs))
        self._step(None)

    def _start(self, parts: Sequence[Sequence[Events]]) -> None:
        """Makes the engines, planned for what comes first."""
        for program, own in zip(self._programs, parts, strict=True):
            program.compiled = planned_for(program.compiled, own, always=self._is_measured)
            engine = Engine(program.compiled.physical, program.world)
            engine.by_rule = Counter() if self._is_measured else None
            self._engines.append(engine)
            if self._is_measured:
                self._most = self._enough = _fine_step(program.compiled.physical)

    def _check_columns(self) -> None:
        """Raises what is missing for the types that have come so far."""
        for noticed, program in zip(self._noticed, self._programs, strict=True):
            noticed.check(program.compiled, lenient=self._lenient)

    def _step(self, bound: int | None) -> None:
        """Time passes up to a bound, or to the end; in smaller steps where those before gave too many answers."""
        for k, (engine, program) in enumerate(zip(self._engines, self._programs, strict=True)):
            if bound is None:
                ends = [self._earliest[k], self._latest[k]] if self._latest[k] > -FAR else []
                engine.sources.limit(*span(ends, program.world))
            else:
                engine.sources.limit(self._earliest[k], None)
        for cut in [*self._cuts(FAR if bound is None else bound), FAR if bound is None else bound]:
            found = [self._advanced(k, cut) for k in range(len(self._engines))]
            if not self._is_measured or cut < FAR:  # when all is over, nothing is dropped any more
                self._measure()
            count = self._give(found)
            fewer, more = max(SLICE // 256, 1, self._enough // 2), min(self._most, self._enough * 2)
            self._enough = fewer if count > MANY else more

    def _cuts(self, bound: int) -> list[int]:
        """Times at which a step is cut, if it would be too large."""
        if not self._loaded:
            return []
        ends = np.concatenate(self._loaded)
        due = ends[ends <= bound]
        self._loaded = [ends[ends > bound]] if len(due) < len(ends) else []
        if len(due) <= 2 * self._enough:
            return []
        return sorted({int(end) for end in np.sort(due)[self._enough :: self._enough]} - {bound})

    def _advanced(self, number: int, bound: int) -> Found | None:
        engine = self._engines[number]
        if bound != FAR and self._latest[number] == -FAR:
            return None  # its time has not begun
        bounds = dict.fromkeys(engine.sources.names, bound)
        try:
            return engine.advance(bounds) if bound == FAR or engine.sources.are_behind(bounds) else None
        except EphemeraError as error:
            raise RunFailed(number, error) from error

    def _measure(self) -> None:
        for program, engine in zip(self._programs, self._engines, strict=True):
            for lane in engine.lanes.values():
                for name, history in lane.histories.items():
                    most = max(len(history), program.peaks.get(name, (0, None))[0])
                    program.peaks[name] = (most, history.relevant)
                    if self._is_measured and len(history) >= program.kept.get(name, (0, 0))[0]:
                        program.kept[name] = (len(history), sum(batch.nbytes for batch in history.batches()))

    def _give(self, found: Sequence[Found | None]) -> int:
        """Writes what has become certain; how much that is."""
        parts: list[AnswerPart] = []
        rules: list[int] = []
        for k, (one, program, engine) in enumerate(zip(found, self._programs, self._engines, strict=True)):
            close = engine.take_close()
            if close:
                form = self._form = self._form or self._answer_form()
                program.bad += len(close)
                catalogue = program.compiled.rules.resolved.catalogue
                self._bury.bury(k, bad_of_close(close, catalogue, as_numbers=form.counting[k].stamps), ())
            letters = self._new(k, engine.take_dead_letters())
            if letters:
                program.undefined += len(letters)
                self._bury.bury(k, (), letters)
            if one is None:
                continue
            for part, rule in answer_parts(one, program.compiled.rules, k):
                if program.compiled.physical.gives(part.events.label):
                    parts.append(part)
                    rules.append(rule)
        for part in parts:
            self._programs[part.program].answers[part.events.label] += len(part.events)
        count = sum(len(part.events) for part in parts)
        if count and self._out is not None:
            self._form = self._form or self._answer_form()
            self._out.write(AnswerBatch(self._form, parts, rules))
        return count

    def _new(self, program: int, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """Heads without a value that have not been told before: it does not matter when they had none."""
        found: list[DeadLetter] = []
        for letter in letters:
            known = hash((program, letter.rule, repr(letter.variables), letter.reason))
            if known not in self._told:
                self._told.add(known)
                found.append(letter)
        return found

    def _answer_form(self) -> AnswerForm:
        """How answers are written, which follows from the first good event of each input."""
        counting: list[Counting] = []
        for k in range(len(self._programs)):
            stamps = all(one.form[k] is not False for one in self.inputs if one.form)
            own = [decoder for one in self.inputs if (decoder := one.decoders[k]) is not None]
            instants = any(decoder.has_instants for decoder in own)
            counting.append(Counting(stamps, stamps and not instants))
        days = tuple(tuple(day for own in p.world.calendars.values() for day in own) for p in self._programs)
        emit = frozenset(name for program in self._programs for name in program.compiled.physical.emit)
        return AnswerForm(tuple(p.compiled.rules for p in self._programs), tuple(counting), days, emit)

    def _tell(self) -> None:
        """What is to be said of the whole run."""
        form = self._form or self._answer_form()
        for k, (program, engine) in enumerate(zip(self._programs, self._engines, strict=True)):
            compiled, noticed = program.compiled, self._noticed[k]
            engine.came(self._came[k])
            program.span = max(self._latest[k] - self._earliest[k], 0)
            program.examined = {n: r.examined for lane in engine.lanes.values() for n, r in lane.rules.items()}
            program.by_rule = dict(engine.by_rule or {})
            program.as_numbers = form.counting[k].stamps
            program.never = never(compiled, engine.awaited, engine.matched, unread=engine.unread)
            program.said = compiled.rules.resolved.catalogue.local.note_since(self._assumed[k])
            program.warnings = (*noticed.warnings, *noticed.keys.notes(), *program.never.warnings)
