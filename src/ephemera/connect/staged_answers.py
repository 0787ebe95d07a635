"""This module holds answers back until all have been seen, where only then the types of their columns are known.

They wait packed, in memory as long as they are few, else on disk. Where the rules say all types before the first
answer, nobody has to wait: `AnswerForm.is_open` says whether they do.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa

from ephemera.connect.sink import spooled
from ephemera.engine.cluster.message import pack, unpack
from ephemera.formats.answer_kinds import SeenKinds, batch_of, cells_of, schema_of
from ephemera.formats.answer_order import AnswerPart, in_order
from ephemera.formats.answers import AnswerBatch, AnswerForm
from ephemera.formats.decode_arrow import Read
from ephemera.formats.encode_arrow import Writer
from ephemera.formats.encode_typed_arrow import Held
from ephemera.kernels.columns import Column


class StagedAnswers:
    """Answers whose columns have no types yet."""

    def __init__(self, form: AnswerForm) -> None:
        self._form = form
        self._file = spooled()
        self._seen = SeenKinds()
        counted = zip(form.programs, form.counting, strict=True)
        self._writers = [Writer(rules, Read([], [], [], c.stamps, c.attributes), form.emit) for rules, c in counted]

    def add(self, answers: AnswerBatch) -> None:
        """Some answers, in their order."""
        parts = [part for part in answers.parts if len(part.events)]
        for part in parts:
            self._seen.look(part.events, self._cells(part), self._unit(part))
        if parts:
            pickle.dump([(pack(part.events), part.message, part.program) for part in parts], self._file)

    def tables(self) -> tuple[pa.Schema, Iterator[pa.Table]]:
        """What the columns are, and the answers in the order in which they came."""
        expected: dict[str, Held] = {}
        for layout in self._form.layouts:
            expected |= layout.columns
        counting = self._form.counting
        stamps, attributes = all(c.stamps for c in counting), all(c.stamps and c.attributes for c in counting)
        kinds = self._seen.columns(self._writers, expected, stamps=stamps, attributes=attributes)
        return schema_of(kinds), self._tables(kinds)

    def close(self) -> None:
        """They go."""
        self._file.close()

    def _tables(self, kinds: dict[str, str]) -> Iterator[pa.Table]:
        end = self._file.tell()
        self._file.seek(0)
        while self._file.tell() < end:
            parts = [
                AnswerPart(unpack(packed, self._form.programs[program].resolved.catalogue), message, program)
                for packed, message, program in pickle.load(self._file)
            ]
            batches = [
                batch_of(part.events, self._cells(part), kinds, self._unit(part), self._writers[part.program])
                for part in parts
            ]
            table = pa.Table.from_batches(batches)
            order = in_order(parts)
            yield table if (order[1:] > order[:-1]).all() else table.combine_chunks().take(pa.array(order))

    def _cells(self, part: AnswerPart) -> dict[str, Column]:
        numbers = self._form.counting[part.program].stamps
        return cells_of(part.events, part.message, self._writers[part.program], numbers=numbers)

    def _unit(self, part: AnswerPart) -> int:
        return self._form.programs[part.program].resolved.catalogue.unit
