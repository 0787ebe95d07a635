"""This module holds answers by columns, as a run gives them step by step, and gives them out in any form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from ephemera.formats.answer_order import AnswerPart, in_order
from ephemera.formats.encode_json import encode_lines
from ephemera.formats.encode_typed_arrow import Counting, Layout, UnlikeType, layout
from ephemera.rules.nodes import Ruleset
from ephemera.terms.events import Event


@dataclass(frozen=True)
class AnswerForm:
    """How the answers of a run are written: what its programs are, and how their inputs write times."""

    programs: tuple[Ruleset, ...]
    counting: tuple[Counting, ...]
    calendars: tuple[tuple[Event, ...], ...]
    """For each program the days of all its calendars."""
    emit: frozenset[str] = frozenset()
    """What is asked for, if that is not everything."""

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """The columns of each program's answers."""
        given = zip(self.programs, self.counting, self.calendars, strict=True)
        return tuple(layout(rules, counting, days, self.emit) for rules, counting, days in given)

    @cached_property
    def is_open(self) -> bool:
        """Whether the types of columns are only known when all answers are.

        The rules may leave them open, and where times are numbers, any of these may turn out not to be whole.
        """
        counts = any(c.stamps and rules.resolved.catalogue.unit > 1 for c, rules in self._counted)
        return counts or any("json" in one.columns.values() for one in self.layouts)

    @property
    def _counted(self) -> Iterator[tuple[Counting, Ruleset]]:
        return zip(self.counting, self.programs, strict=True)

    @cached_property
    def schema(self) -> pa.Schema:
        """What tables of answers look like; columns of one name that hold different things are JSON texts."""
        schemas = [one.schema for one in self.layouts]
        try:
            return pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise UnlikeType(
                f"the programs give columns of one name that hold different things: {error}; run them one by one, or "
                "write JSON lines"
            ) from None


@dataclass(frozen=True, slots=True)
class AnswerBatch:
    """Answers that have become certain, in whatever form somebody wants them; always in their order."""

    form: AnswerForm
    parts: Sequence[AnswerPart]
    rules: Sequence[int]
    """For each part the number of the rule that sends it, if it is one of messages; 0 otherwise."""

    def __len__(self) -> int:
        return sum(len(part.events) for part in self.parts)

    def lines(self) -> bytes:
        """A line of JSON each."""
        catalogues = [rules.resolved.catalogue for rules in self.form.programs]
        return encode_lines(self.parts, catalogues, as_numbers=[one.stamps for one in self.form.counting])

    def objects(self) -> list[dict[str, Any]]:
        """Objects, as JSON has them."""
        return [json.loads(line) for line in self.lines().splitlines()]

    def table(self) -> pa.Table:
        """Rows with a column for each argument, of types that are known before a run."""
        filled = [(part, rule) for part, rule in zip(self.parts, self.rules, strict=True) if len(part.events)]
        if not filled:
            return self.form.schema.empty_table()
        batches = [self._batch(part, rule) for part, rule in filled]
        whole = pa.concat_tables(batches) if len(batches) > 1 else batches[0]
        order = in_order([part for part, _ in filled])
        return whole if (order[1:] > order[:-1]).all() else whole.combine_chunks().take(pa.array(order))

    def _batch(self, part: AnswerPart, rule: int) -> pa.Table:
        found = pa.Table.from_batches([self.form.layouts[part.program].batch(part.events, rule, part.message)])
        schema = self.form.schema
        if found.schema.equals(schema):
            return found
        columns = [
            found.column(name).cast(kind) if name in found.column_names else pa.nulls(len(found), kind)
            for name, kind in zip(schema.names, schema.types, strict=True)
        ]
        return pa.table(columns, schema=schema)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.objects())
