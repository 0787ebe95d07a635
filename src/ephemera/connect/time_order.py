"""This module brings the events of several inputs into the order of time, as they are read.

Over a history everything is known, so the order of the input means nothing. Most inputs are in the order of time all
the same, or nearly so: these are taken as they come, with a few megabytes of them waiting for what may still come
before them. Where that does not suffice, `OutOfOrder` is raised, and the whole input has to be sorted first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ephemera.base.errors import EphemeraError
from ephemera.connect.source import OpenSource, Source
from ephemera.formats.decode import Batch, Cells, Decoder, Lines, Objects, Rows
from ephemera.formats.decode_csv import BadFile
from ephemera.formats.decoded import Decoded, span_of
from ephemera.kernels.event_columns import Events, size_of
from ephemera.kernels.history import FAR

WINDOW = 32 << 20
"""Bytes of events that wait for earlier ones."""


class OutOfOrder(Exception):
    """An event ends before others that have been taken already."""


@dataclass(slots=True)
class Input:
    """A source as it is read, by all programs of a run."""

    source: Source
    decoders: Sequence[Decoder | None]
    """How each program reads it, if it does."""
    reached: int = -FAR
    """Before which nothing is expected to end that is still to come."""
    has_begun: bool = False
    """Whether a good event has come for each program that reads it."""
    has_ended: bool = False
    form: list[bool | None] = field(default_factory=list)
    """For each program, whether times are numbers, by the first good event."""
    opened: OpenSource | None = None
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    """The latest end and the size of each batch that others wait with."""

    def read(self) -> list[Decoded] | None:
        """The next batch as each program reads it."""
        if self.opened is None:
            self.opened = self.source.open()
        self.form = self.form or [None] * len(self.decoders)
        batch = checked(self.opened.read(), self.source)
        if batch is None:
            self.has_ended = True
            self.opened.close()
            return None
        try:
            found = [Decoded() if decoder is None else decoder.decode(batch) for decoder in self.decoders]
        except EphemeraError:
            raise
        except ValueError as error:
            where = getattr(self.opened, "path", None) or self.source.name
            raise BadFile(f"cannot read {where}: {error}") from None
        for k, one in enumerate(found):
            if self.form[k] is None:
                self.form[k] = one.as_numbers
        forms = zip(self.form, self.decoders, strict=True)
        self.has_begun = self.has_begun or all(form is not None or own is None for form, own in forms)
        return found

    @property
    def part(self) -> float:
        """How much of it has been read, if it can tell."""
        return 1.0 if self.has_ended else float(getattr(self.opened, "part", 0.0))

    def close(self) -> None:
        """Nobody reads any more."""
        if self.opened is not None:
            self.opened.close()


def checked(batch: object, source: Source) -> Batch | None:
    """What a source gave, if that is a batch; own sources may give anything."""
    if batch is None or isinstance(batch, Lines | Cells | Rows | Objects):
        return batch
    raise TypeError(
        f"`read` of {source.name} gave a {type(batch).__name__}; it gives sources.Objects (a list of events), "
        "sources.Lines, sources.Rows or sources.Cells, and None at the end"
    )


def as_they_come(
    inputs: Sequence[Input], note: Callable[[list[Decoded]], None], window: int = WINDOW
) -> Iterator[tuple[int, list[list[Events]]]]:
    """The events of all inputs, with a time before which no event ends that has not been given.

    `note` is told of each batch. Inputs that are behind are read first, and none is passed over before it has begun.
    """
    held = 0
    passed = -FAR
    while going := [one for one in inputs if not one.has_ended]:
        behind = min(going, key=lambda one: (one.has_begun, one.reached))
        found = behind.read()
        if found is None:
            held -= sum(size for _, size in behind.waiting)
            continue
        note(found)
        parts = [one.parts for one in found]
        ends = span_of(part for own in parts for part in own)
        if ends is None:
            continue
        if ends[0] < passed:
            raise OutOfOrder
        yield passed, parts  # what has passed now may be in this batch
        size = sum(size_of(part) for own in parts for part in own)
        behind.waiting.append((ends[1], size))
        held += size
        while held > window and (slowest := min(going, key=lambda one: one.reached)).waiting:
            end, size = slowest.waiting.popleft()
            slowest.reached = max(slowest.reached, end)
            held -= size
        if all(one.has_begun for one in going):
            passed = max(passed, min(one.reached for one in going))
