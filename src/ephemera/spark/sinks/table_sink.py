"""This module writes the answers of a stream to a table of Spark, exactly once.

The table is partitioned by the number of the batch. A batch replaces its own partition and no other, so a replay leaves
what was there before. The table belongs to one query, whose name it has among its properties, and at its location if
that is given.

A write that was killed leaves the files of its finished tasks beside the table, and Spark's next write, which looks for
finished tasks in the same place, would take them for its own. So what is left there is removed at each start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from ephemera.base.errors import EphemeraError
from ephemera.engine.cluster.message import Answers
from ephemera.spark.runtime.exchange import answers_of
from ephemera.spark.runtime.failures import told_by
from ephemera.spark.runtime.map_in_arrow import map_in_arrow
from ephemera.spark.sinks.encode_answers import AnswerForm
from ephemera.spark.sinks.folder_sink import folder_at

_NAME = re.compile(r"\w+(\.\w+){0,2}")
_QUERY = "ephemera.query"
_UNFINISHED = "_temporary"
"""Where Hadoop's committer keeps the files of tasks until their job is done."""


class WrongTable(EphemeraError):
    """A table that a stream cannot write to."""


@dataclass(frozen=True)
class TableSink:
    """Writes answers to a table, which is made where there is none.

    With a `location` the files lie there, and a catalog that forgets its tables, as the one in memory does, is told of
    them again at the next start.
    """

    table: str
    forms: Mapping[int, AnswerForm]
    location: str | None = None

    @property
    def schema(self) -> StructType:
        """The columns of the table; the last one is the number of the batch."""
        (first, *_) = self.forms.values()
        own = from_arrow_schema(first.columns.schema)
        return StructType([*own.fields, StructField(_partition(own.names), LongType())])

    def open(self, spark: SparkSession, query: str) -> None:
        """Before the first batch of a start: makes the table, or sees that it is the one of this query."""
        if _NAME.fullmatch(self.table) is None:
            raise WrongTable(f"`{self.table}` is no name of a table; it is such as answers or shop.answers")
        lower = [name.lower() for name in self.schema.names]
        twice = [name for name in self.schema.names if lower.count(name.lower()) > 1]
        if twice:
            raise WrongTable(f"Spark does not tell the columns {' and '.join(twice)} apart; rename one of them")
        if self.location is not None:
            folder_at(self.location).claim(query)
        if spark.catalog.tableExists(self.table):
            self._check(spark, query)
        else:
            self._make(spark, query)
        self._clear(spark)

    def _clear(self, spark: SparkSession) -> None:
        """Removes what a killed write has left unfinished; the table is that of one query, so nobody else writes."""
        described = spark.sql(f"DESCRIBE EXTENDED {self.table}").collect()
        locations = [row.data_type for row in described if row.col_name == "Location"]  # columns come first
        if locations:
            jvm: Any = spark._jvm
            left = jvm.org.apache.hadoop.fs.Path(locations[-1], _UNFINISHED)
            left.getFileSystem(spark._jsc.hadoopConfiguration()).delete(left, True)

    def _make(self, spark: SparkSession, query: str) -> None:
        columns = ", ".join(f"`{c.name}` {c.dataType.simpleString()}" for c in self.schema.fields)
        where = "" if self.location is None else f" LOCATION '{_literal(self.location)}'"
        spark.sql(
            f"CREATE TABLE {self.table} ({columns}) USING parquet PARTITIONED BY ({self.schema.names[-1]})"
            f"{where} TBLPROPERTIES ('{_QUERY}' = '{_literal(query)}')"
        )
        if self.location is not None:
            spark.sql(f"ALTER TABLE {self.table} RECOVER PARTITIONS")

    def _check(self, spark: SparkSession, query: str) -> None:
        found = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {self.table}").collect()}
        if found.get(_QUERY) != query:
            owner = f"query {found[_QUERY]}" if _QUERY in found else "no query of Ephemera"
            raise WrongTable(f"`{self.table}` is the table of {owner}, and this is query {query}; name another table")
        theirs = [(c.name, c.dataType.simpleString()) for c in spark.table(self.table).schema.fields]
        ours = [(c.name, c.dataType.simpleString()) for c in self.schema.fields]
        if theirs != ours:
            differ = [pair for pair in [*theirs, *ours] if (pair in theirs) != (pair in ours)] or ours
            raise WrongTable(f"`{self.table}` has other columns than the answers, such as {' '.join(differ[0])}")

    def write(self, shipped: DataFrame, batch: int) -> None:
        """The answers of a batch; `shipped` is read once, and what else is in it is left out.

        The partition is named in full. So nothing but it is replaced, whatever Spark is told to overwrite otherwise.
        """
        *own, partition = self.schema.fields
        answers = map_in_arrow(shipped, ToTable(self.forms), StructType(own))
        shipped.sparkSession.sql(
            f"INSERT OVERWRITE TABLE {self.table} PARTITION (`{partition.name}` = {batch}) SELECT * FROM {{answers}}",
            answers=answers,
        )


@dataclass(frozen=True, slots=True)
class ToTable:
    """Writes answers by the columns of the table."""

    forms: Mapping[int, AnswerForm]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from told_by("write", (self._rows(answers) for answers in answers_of(given)))

    def _rows(self, answers: Answers) -> pa.RecordBatch:
        form = self.forms[answers.program]
        return form.columns.batch(form.events(answers), answers.rule)


def _partition(names: list[str]) -> str:
    """The column of the number of the batch: an attribute may have taken its name."""
    taken = {name.lower() for name in names}
    return next(name for name in ("batch", "batch_number", "ephemera_batch") if name not in taken)


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
