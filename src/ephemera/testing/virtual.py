"""This module is an engine for tests: nothing passes but what a test lets pass, and what is wrong is raised at once.

Time stands still until it is moved. An instant stays open as long as something may still happen in it: it is over when
time moves on, or when somebody asks for answers, since answers that end with it are certain only then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from ephemera.base.errors import EphemeraError
from ephemera.base.time import MICROSECOND, describe, microseconds
from ephemera.formats.json_events import BadEvent, read_time
from ephemera.program import Program
from ephemera.rules.outcome import DeadLetter, LateEvent
from ephemera.syntax.cursor import Cursor, SyntaxFault
from ephemera.syntax.expressions import duration
from ephemera.syntax.lexer import tokenize
from ephemera.terms.text import iso
from ephemera.terms.values import Time

_EXACT = Context(prec=40, rounding=ROUND_CEILING)
"""A time is cut off to microseconds when it is read, so what is rounded up by less than one is read as it was."""


class VirtualEngine:
    """A program that runs live on virtual time, which begins at `start`; options are those of `Program.engine`.

    >>> import ephemera
    >>> from ephemera.testing.virtual import VirtualEngine
    >>> engine = VirtualEngine(
    ...     ephemera.compile(
    ...         "TIME UNIT 1 hour; EVENT order(id: string); EVENT shipped(id: string);"
    ...         "overdue(id) <- o: order(id), w: extend(o, 6), while w: not shipped(id);"
    ...     )
    ... )
    >>> engine.send("order", "a").advance("2h").send("order", id="b").advance("4h").answers
    [{'event': 'overdue', 'time': [0, 6], 'data': ['a']}]
    >>> engine.advance("1h").send("shipped", "b").advance("1 week").answers  # nothing new
    [{'event': 'overdue', 'time': [0, 6], 'data': ['a']}]
    """

    def __init__(self, program: Program, *, start: float | str = 0, allow_bad: bool = False, **options: Any) -> None:
        """`start` is a number of the program's units, or a time such as 2026-03-01T09:00Z; then times are texts.

        What is no event of the program is raised, unless `allow_bad` has `bad` keep it.
        """
        catalogue = program.catalogue
        self._unit = catalogue.unit
        self._is_text = isinstance(start, str)
        self._now = read_time(start, catalogue.unit, catalogue.local)
        self._local = catalogue.local
        self._closed = self._now - MICROSECOND
        self._allow_bad = allow_bad
        self._answers: list[dict[str, Any]] = []
        self._taken = 0
        self._undefined: list[DeadLetter] = []
        self.engine = program.engine(now=lambda: self._now, **options)
        """The engine itself."""

    def __repr__(self) -> str:
        return f"<VirtualEngine at {self.now}: {len(self._answers):,} answers>"

    @property
    def now(self) -> int | float | str:
        """The time that it is."""
        if self._is_text:
            return iso(Time(self._now))
        whole, rest = divmod(self._now, self._unit)
        return whole if not rest else self._now / self._unit

    # ---- what happens --------------------------------------------------------------------------------------

    def send(self, event: str | Mapping[str, Any], *values: Any, time: Any = None, **named: Any) -> VirtualEngine:
        """Something happens, now or at a `time`, which may be a pair: `send("order", "a", 3)`, `send("order", id="a")`.

        An event may also be the object of a line of JSON; without a time it happens now. At a time that is over it is
        `late`, as it would be live.
        """
        if isinstance(event, Mapping):
            if values or named:
                raise ValueError("an event that is an object has its values in it")
            given, stamp = dict(event), event.get("time") if time is None else time
        elif values and named:
            raise ValueError(f"the values of `{event}` are given by position or by name, and not both")
        else:
            given, stamp = {"event": event, "data": named or list(values)}, time
        stamps = stamp if isinstance(stamp, Sequence) and not isinstance(stamp, str) else [stamp]
        if any(self._read(one) > self._now for one in stamps if one is not None):
            raise ValueError(f"{stamp} is still to come: it is {self.now}; `advance` first")
        if stamp is None and self._closed >= self._now:
            raise ValueError(
                f"nothing more can happen at {self.now}: answers were asked for, and so this instant is over; "
                "`advance` first, or ask later"
            )
        given["time"] = self._given(self._now) if stamp is None else stamp
        self._take(self.engine.send(given))
        if self.engine.bad and not self._allow_bad:
            raise EphemeraError(f"{given} is no event of the program: {self.engine.bad[-1].reason}")
        return self

    def advance(self, by: str | float | timedelta) -> VirtualEngine:
        """Time passes: a text such as `6h` or `1 day 30 min`, a number of the program's units, or a timedelta."""
        length = self._length(by)
        if length < 0:
            raise ValueError(f"time does not go back, and {by} would")
        self._pass_until(self._now + length)
        return self

    def advance_to(self, time: float | str) -> VirtualEngine:
        """Time passes until then."""
        until = self._read(time)
        if until < self._now:
            raise ValueError(f"time does not go back: it is {self.now}, and {time} is over")
        self._pass_until(until)
        return self

    # ---- what comes of it ----------------------------------------------------------------------------------

    @property
    def answers(self) -> list[dict[str, Any]]:
        """All answers and messages so far, as they became certain; this instant is over when they are asked for."""
        if self._closed < self._now:
            self._close(self._now)
        return list(self._answers)

    def take(self) -> list[dict[str, Any]]:
        """The answers that are new since this was last called."""
        answers, before = self.answers, self._taken
        self._taken = len(answers)
        return answers[before:]

    @property
    def bad(self) -> list[BadEvent]:
        """What was no event of the program."""
        return self.engine.bad

    @property
    def late(self) -> list[LateEvent]:
        """What came too late to count."""
        return self.engine.late

    @property
    def undefined(self) -> list[DeadLetter]:
        """Answers that had no value."""
        self._undefined += self.engine.take_dead_letters()
        return self._undefined

    # ---- time ----------------------------------------------------------------------------------------------

    def _pass_until(self, until: int) -> None:
        if until > self._now:
            self._now = until
            if self._closed < until - MICROSECOND:
                self._close(until - MICROSECOND)

    def _close(self, bound: int) -> None:
        self._closed = bound
        self._take(self.engine.advance(self._given(bound)))

    def _take(self, answers: list[dict[str, Any]]) -> None:
        self._answers += answers

    def _given(self, time: int) -> int | Decimal | str:
        """A time as events give it."""
        if self._is_text:
            return iso(Time(time))
        whole, rest = divmod(time, self._unit)
        return whole if not rest else _EXACT.divide(Decimal(time), Decimal(self._unit))

    def _read(self, time: Any) -> int:
        return read_time(time, self._unit, self._local)

    def _length(self, by: str | float | timedelta) -> int:
        if isinstance(by, timedelta):
            return by // timedelta(microseconds=1)
        return read_time(by, self._unit) if not isinstance(by, str) else length_of(by, self._unit)


def length_of(text: str, unit: int) -> int:
    """How long a duration is that stands in a text, in microseconds.

    >>> length_of("1h 30 min", 1)
    5400000000
    """
    cursor = Cursor(tokenize(text))
    try:
        parts = duration(cursor).parts
    except SyntaxFault:
        parts = ()
    length = microseconds([(part.amount, part.unit) for part in parts], unit)
    if not parts or not cursor.ended or length is None:
        raise ValueError(f"`{text}` is no duration such as `6h`, `90 sec` or `{describe(90 * 60 * 1_000_000)}`")
    return length
