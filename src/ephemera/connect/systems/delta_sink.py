"""This module writes answers to a table of Delta Lake, exactly once: each commit of a run is one version of the table.

There are the columns `event`, `begin` and `end`, and one for each argument, of the type that the rules let expect. An
address is one table: if several types of answers go there it has the columns of all, and those that a type does not
have are null in its rows. A version names the run and the number of its commit, as a transaction of an application, so
that the table itself knows what it has had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ephemera.connect.systems.address import Address, NoAnswer
from ephemera.connect.systems.delta_client import check_delta, refused
from ephemera.formats.answer_order import AnswerPart, in_order
from ephemera.formats.answers import AnswerBatch
from ephemera.formats.encode_arrow import DATA, RECIPIENT, TRANSPORT
from ephemera.formats.encode_typed_arrow import UnlikeType

if TYPE_CHECKING:
    from deltalake import DeltaTable

_ATTEMPTS = 10
"""So often a commit is begun anew if somebody else changes the table in the same moment; `deltalake` itself retries."""


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    """A table of Delta Lake."""

    address: Address

    def __post_init__(self) -> None:
        check_delta(self.address)
        self.address.check_options(())

    @property
    def name(self) -> str:
        return str(self.address)

    def open_target(self, identity: str, position: Any = None) -> OpenDeltaTarget:
        del position  # the table knows the last commit
        return OpenDeltaTarget(self.address, identity)


class OpenDeltaTarget:
    """A table that is being written."""

    position: Any = None

    def __init__(self, address: Address, identity: str) -> None:
        self._address = address
        self._identity = identity
        self._table: DeltaTable | None = None
        self.last = self._look()
        """The number of the last commit of this run, when the table was opened."""

    def _look(self) -> int:
        """Loads the table as it is now, if it is there; the number of the last commit of this run."""
        from deltalake import DeltaTable  # noqa: PLC0415 - only who uses Delta Lake needs it
        from deltalake.exceptions import DeltaError, TableNotFoundError  # noqa: PLC0415 - only who uses Delta Lake

        try:
            if self._table is None:
                self._table = DeltaTable(self._address.path)
            else:
                self._table.update_incremental()
        except TableNotFoundError:
            return 0
        except (DeltaError, OSError, ValueError) as error:
            raise refused(self._address, error) from None
        return self._table.transaction_version(self._identity) or 0

    def encode(self, answers: AnswerBatch) -> bytes:
        filled = [(part, rule) for part, rule in zip(answers.parts, answers.rules, strict=True) if len(part.events)]
        if not filled:
            return b""
        whole = self._joined([_columns(answers, part, rule) for part, rule in filled])
        order = in_order([part for part, _ in filled])
        if not (order[1:] > order[:-1]).all():
            whole = whole.combine_chunks().take(pa.array(order))
        written = pa.BufferOutputStream()
        with pa.ipc.new_stream(written, whole.schema) as stream:
            stream.write_table(whole)
        found: bytes = written.getvalue().to_pybytes()
        return found

    def put(self, load: bytes, number: int) -> None:
        from deltalake import DeltaTable  # noqa: PLC0415 - only who uses Delta Lake needs it
        from deltalake.exceptions import CommitFailedError, DeltaError  # noqa: PLC0415 - only who uses Delta Lake

        rows = self._joined(_decoded(load))
        failed: Exception | None = None
        for _ in range(_ATTEMPTS):
            if self._look() >= number:
                return
            try:
                if self._table is None:
                    self._make(rows, number)
                else:
                    self._add(self._table, rows, number)
            except CommitFailedError as error:
                failed = error  # somebody has changed the table since it was looked at
            except (DeltaError, OSError, ValueError) as error:
                if self._table is not None or not DeltaTable.is_deltatable(self._address.path):
                    raise refused(self._address, error) from None
                failed = error  # somebody else has made it
            else:
                return
        raise NoAnswer(
            f"`{self._address}`: others change the table all the time, so that nothing can be added: {failed}; "
            "let them wait, or name a table of your own, and go on from the checkpoint"
        )

    def _make(self, rows: pa.Table, number: int) -> None:
        """A new table; one who comes later must not try again, which would put other columns in place of those."""
        from deltalake import CommitProperties, Transaction, write_deltalake  # noqa: PLC0415 - only who uses it

        said = CommitProperties(max_commit_retries=0, app_transactions=[Transaction(self._identity, number)])
        write_deltalake(self._address.path, rows, mode="error", commit_properties=said)

    def _add(self, table: DeltaTable, rows: pa.Table, number: int) -> None:
        """More rows; it is tried again if others only add some, and fails if columns or this run's commits change."""
        from deltalake import CommitProperties, Transaction, write_deltalake  # noqa: PLC0415 - only who uses it

        fitting = self._fitting(rows, pa.schema(table.schema().to_arrow()))
        said = CommitProperties(app_transactions=[Transaction(self._identity, number)])
        write_deltalake(table, fitting, mode="append", schema_mode="merge", commit_properties=said)

    def _fitting(self, rows: pa.Table, there: pa.Schema) -> pa.Table:
        """The rows by the columns that the table has; raises if these cannot hold them as they are.

        Nobody else does: `deltalake` makes values fit, and drops the fraction of a number for that.
        """
        kinds = {field.name.lower(): field for field in there}
        for number, field in enumerate(rows.schema):
            found = kinds.get(field.name.lower(), field)
            if found.name == field.name and found.type == field.type:
                continue
            try:
                if found.name != field.name or not _may_hold(found.type, field.type):
                    raise pa.ArrowInvalid
                rows = rows.set_column(number, found, rows.column(number).cast(found.type))
            except pa.ArrowInvalid:
                raise NoAnswer(
                    f"`{self._address}`: the table has a column `{found.name}` of type {found.type}, and the answers "
                    f"have `{field.name}` of type {field.type}; name another table, or rename the argument"
                ) from None
        return rows

    def _joined(self, tables: list[pa.Table]) -> pa.Table:
        try:
            return pa.concat_tables(tables, promote_options="default")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise UnlikeType(
                f"`{self._address}`: answers give columns of one name that hold different things: {error}; "
                "write them to several tables, by WRITE … TO in programs"
            ) from None

    def close(self) -> None:
        """Nothing is held: what was put is in the table."""


def _columns(answers: AnswerBatch, part: AnswerPart, rule: int) -> pa.Table:
    """Some answers with the columns of their type, which follow from the rules, and no others."""
    form = answers.form
    layout = replace(form.layouts[part.program], counts=form.counting[part.program].stamps, has_fractions=True)
    found = pa.Table.from_batches([layout.batch(part.events, rule, part.message)])
    if rule in layout.messages:
        own = [DATA, RECIPIENT, TRANSPORT]
    else:
        own = layout.names.names(part.events.label, part.events.arity)
    always = ("event", "begin", "end", *own)
    found = found.select([n for n in found.column_names if n in always or found[n].null_count < len(found)])
    for name in found.column_names[3:]:
        if {one.columns.get(name) for one in form.layouts} >= {"int", "float"}:  # in several programs
            number = found.column_names.index(name)
            found = found.set_column(number, name, found[name].cast(pa.float64()))
    return found


def _may_hold(kind: pa.DataType, other: pa.DataType) -> bool:
    """Whether a column takes values of another type, at least some: doubles whole numbers, and long texts any."""
    if pa.types.is_float64(kind):
        return bool(pa.types.is_int64(other))
    return bool(pa.types.is_large_string(kind) and pa.types.is_string(other))


def _decoded(load: bytes) -> list[pa.Table]:
    """The tables that were encoded one after the other."""
    found: list[pa.Table] = []
    rest = pa.BufferReader(load)
    while rest.tell() < len(load):
        with pa.ipc.open_stream(rest) as stream:
            found.append(stream.read_all())
    return found
