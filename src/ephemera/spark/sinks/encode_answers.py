"""This module writes shipped answers as live sinks need them: lines, columns, and files of either as one buffer each.

In batch mode the columns are chosen when all answers are known. A stream never knows all of them, so here each column
has the type that the rules let expect, and times are instants, whatever the input counts: no event that is yet to come
can change a column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ephemera.engine.cluster.message import Answers, pack, unpack
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.formats.encode_json import lines
from ephemera.formats.encode_typed_arrow import Counting, Held, Layout, UnlikeType, layout
from ephemera.kernels.event_columns import Events
from ephemera.rules.nodes import Catalogue

FileFormat = Literal["json", "parquet", "csv"]
ENDINGS: dict[FileFormat, str] = {"json": "jsonl", "parquet": "parquet", "csv": "csv"}


@dataclass(frozen=True)
class AnswerForm:
    """What is known of the answers of one program."""

    columns: Layout
    names: Mapping[str, str]
    """What its dead letters say of where they come from."""

    @property
    def catalogue(self) -> Catalogue:
        return self.columns.catalogue

    def events(self, answers: Answers) -> Events:
        """The answers, unpacked."""
        return unpack(answers.events, self.catalogue)

    def recipient(self, rule: int) -> dict[str, str]:
        """What messages of a rule have besides their data, unless they say it themselves; answers have nothing."""
        to = self.columns.messages.get(rule)
        return {} if to is None else {"recipient": to[0], "transport": to[1]}

    def lines(self, events: Events, rule: int, *, as_numbers: bool) -> pa.Array:
        """Answers as lines of JSON."""
        return lines(events, self.catalogue, as_numbers=as_numbers, more=self.recipient(rule))


def forms_of(spreads: Sequence[DistributedProgram], names: Sequence[Mapping[str, str]] = ()) -> dict[int, AnswerForm]:
    """The forms of programs by their numbers; their columns are the same."""
    made = {spread.number: _layout(spread) for spread in spreads}
    columns: dict[str, Held] = {}
    for own in made.values():
        for name, held in own.columns.items():
            columns[name] = _common(columns.get(name, held), held)
    return {
        number: AnswerForm(replace(own, columns=columns), names[number] if number < len(names) else {})
        for number, own in made.items()
    }


def _layout(spread: DistributedProgram) -> Layout:
    days = [day for given in spread.world.calendars.values() for day in given]
    return layout(spread.compiled.rules, Counting(stamps=False, attributes=False), days)


def _common(a: Held, b: Held) -> Held:
    if a == b:
        return a
    return "float" if {a, b} == {"int", "float"} else "json"


# ---- files ---------------------------------------------------------------------------------------------------


class FileWriter(Protocol):
    """Takes the answers of a partition; `close` gives the file."""

    def add(self, form: AnswerForm, answers: Answers) -> list[bytes]:
        """Some answers; gives back those that do not fit in, as dead letters."""

    def close(self) -> pa.Buffer: ...


def writer(kind: FileFormat, texts: frozenset[int]) -> FileWriter:
    """What makes a file of a format; lines of the programs `texts` write times as text."""
    return _Lines(texts) if kind == "json" else _Columns(kind)


class _Lines:
    """A file of JSON lines."""

    def __init__(self, texts: frozenset[int]) -> None:
        self._texts = texts
        self._out = pa.BufferOutputStream()

    def add(self, form: AnswerForm, answers: Answers) -> list[bytes]:
        as_numbers = answers.program not in self._texts
        written = form.lines(form.events(answers), answers.rule, as_numbers=as_numbers)
        ended = pc.binary_join_element_wise(written, "\n", "")
        _, offsets, data = ended.buffers()
        if data is not None:
            ends = pa.Array.from_buffers(pa.int32(), len(ended) + 1, [None, offsets], offset=ended.offset)
            first, last = ends[0].as_py(), ends[-1].as_py()
            self._out.write(data.slice(first, last - first))
        return []

    def close(self) -> pa.Buffer:
        return self._out.getvalue()


class _Columns:
    """A file of columns, Parquet or CSV."""

    def __init__(self, kind: FileFormat) -> None:
        self._kind = kind
        self._batches: list[pa.RecordBatch] = []

    def add(self, form: AnswerForm, answers: Answers) -> list[bytes]:
        try:
            self._batches.append(form.columns.batch(form.events(answers), answers.rule))
        except UnlikeType:
            fit, unfit = fitting(form, answers)
            if fit is not None:
                self._batches.append(form.columns.batch(form.events(fit), fit.rule))
            return unfit
        return []

    def close(self) -> pa.Buffer:
        out = pa.BufferOutputStream()
        if self._kind == "parquet":
            _write_parquet(pa.Table.from_batches(self._batches), out)
        else:
            pyarrow.csv.write_csv(pa.Table.from_batches([_with_texts(batch) for batch in self._batches]), out)
        return out.getvalue()


def _write_parquet(table: pa.Table, out: pa.BufferOutputStream) -> None:
    """Numbers and times as differences: a quarter of the time and of the room that dictionaries take for them."""
    whole = {
        field.name for field in table.schema if pa.types.is_integer(field.type) or pa.types.is_temporal(field.type)
    }
    others = [name for name in table.column_names if name not in whole]
    pq.write_table(table, out, use_dictionary=others, column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED"))


def fitting(form: AnswerForm, answers: Answers) -> tuple[Answers | None, list[bytes]]:
    """The answers that fit their columns, and the others as dead letters.

    An event from outside may have a type that no rule lets expect. What comes of it stops no one.
    """
    events = form.events(answers)
    try:
        form.columns.batch(events, answers.rule)
    except UnlikeType:
        pass
    else:
        return answers, []
    fit: list[int] = []
    unfit: list[bytes] = []
    for row in range(len(events)):
        one = events.take(np.array([row]))
        try:
            form.columns.batch(one, answers.rule)
        except UnlikeType as error:
            line = form.lines(one, answers.rule, as_numbers=False)[0].as_py()
            unfit.append(json.dumps({"reason": str(error), "event": line}, ensure_ascii=False).encode())
        else:
            fit.append(row)
    kept = events.take(np.array(fit, dtype=np.int64))
    return replace(answers, events=pack(kept)) if fit else None, unfit


def _with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same with instants as text, as they are written everywhere else."""
    arrays = [
        pc.replace_substring(a.cast(pa.string()), " ", "T") if pa.types.is_timestamp(a.type) else a
        for a in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
