"""This module turns messages of a broker into batches that decoders read: JSON, rows of CSV, or records of Avro.

One message is one event. Columns of the message itself that are wanted come beside what its value holds.
Messages need no more than `value()`. A message without a value, as brokers use it to delete a key, is no event.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ephemera.base.installed import need
from ephemera.connect.systems.address import Address, WrongAddress
from ephemera.formats.decode import Batch, Cells, Lines

FORMATS = ("json", "csv", "avro")
Extra: TypeAlias = Callable[[Any], dict[str, Any]] | None
Found: TypeAlias = tuple[Batch | None, list[int] | None]
"""A batch, and for each of its rows the message that it comes from, unless each comes from its own."""


class MessageFormat:
    """JSON: one object a message."""

    def batch(self, messages: Sequence[Any], extra: Extra) -> Found:
        """What some messages hold."""
        values = [message.value() for message in messages]
        rows: list[int] | None = None
        if not all(values) or any(map(bytes.isspace, values)):
            rows = [k for k, value in enumerate(values) if value is not None and value.strip()]
            values = [values[k] for k in rows]
            messages = [messages[k] for k in rows]
        beside = () if extra is None else tuple(map(extra, messages))
        data = b"\n".join(values)
        if data.count(b"\n") >= len(values) > 0:  # a break within an object is no more than a blank
            data = b"\n".join([value.replace(b"\n", b" ") for value in values])
        return (Lines(data, beside=beside) if values else None), rows


@dataclass(frozen=True, slots=True)
class _Csv(MessageFormat):
    """A row a message; its columns are named by the address."""

    name: str
    columns: tuple[str, ...]
    extra_columns: tuple[str, ...]

    def batch(self, messages: Sequence[Any], extra: Extra) -> Found:
        rows = [k for k, message in enumerate(messages) if (message.value() or b"").strip()]
        lines = [messages[k].value().rstrip(b"\r\n") for k in rows]
        if extra is not None:
            more = (_cells(extra(messages[k]), self.extra_columns) for k in rows)
            lines = [line + b"," + own for line, own in zip(lines, more, strict=True)]
        if not lines:
            return None, rows
        data = b"\n".join(lines)
        if data.count(b"\n") >= len(lines):
            data = b"\n".join([line if b"\n" not in line else _broken(line) for line in lines])
        return Cells(data + b"\n", self.name, (*self.columns, *self.extra_columns), 1), rows


def _broken(line: bytes) -> bytes:
    """A row with line breaks as one that is bad for just that: its first quote is never closed."""
    return b'"' + line.replace(b'"', b'""').replace(b"\n", b" ")


def _cells(values: dict[str, Any], names: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(["" if values[name] is None else values[name] for name in names])
    return text.getvalue().encode()


@dataclass(frozen=True, slots=True)
class _Avro(MessageFormat):
    """A record a message, by a schema; or a whole container of records, which brings its own."""

    schema: Any
    is_framed: bool
    """Whether a zero and the number of the schema stand before each record, as schema registries have it."""

    def batch(self, messages: Sequence[Any], extra: Extra) -> Found:
        lines: list[bytes] = []
        rows: list[int] = []
        beside: list[dict[str, Any]] = []
        for k, message in enumerate(messages):
            value = message.value()
            if not value:
                continue
            found = self._lines(value)
            lines += found
            rows += [k] * len(found)
            if extra is not None:
                beside += [extra(message)] * len(found)
        return (Lines(b"\n".join(lines), beside=tuple(beside)) if lines else None), rows

    def _lines(self, value: bytes) -> list[bytes]:
        """The records of a message as lines; what cannot be read is a text, which is no event, and that is told."""
        try:
            return [msgspec.json.encode(record) for record in self._records(value)]
        except Exception as error:  # noqa: BLE001 - of bytes from outside codecs and logical types may raise anything
            return [msgspec.json.encode(f"no record of the schema: {type(error).__name__}: {error}")]

    def _records(self, value: bytes) -> Iterable[Any]:
        import fastavro  # noqa: PLC0415 - only who reads Avro needs it

        if value.startswith(b"Obj\x01"):
            return fastavro.reader(io.BytesIO(value))
        return [fastavro.schemaless_reader(io.BytesIO(value[5:] if self.is_framed else value), self.schema, None)]


def message_format(address: Address, extra: tuple[str, ...]) -> MessageFormat:
    """How the messages of an address are read."""
    match address.choice("format", FORMATS, "json"):
        case "csv":
            columns = tuple(name.strip() for name in address.options.get("columns", "").split(",") if name.strip())
            if not columns:
                raise WrongAddress(f"`{address}`: rows of CSV need their names, such as columns=event,time,id")
            return _Csv(address.path, columns, extra)
        case "avro":
            need("fastavro", "Avro", "pip install 'ephemera-cep[kafka]'")
            return _Avro(_schema(address), address.choice("framed", ("yes", "no"), "no") == "yes")
        case _:
            return MessageFormat()


def _schema(address: Address) -> Any:
    import fastavro  # noqa: PLC0415 - only who reads Avro needs it

    path = address.options.get("schema")
    if path is None:
        raise WrongAddress(f"`{address}`: records of Avro need their schema, such as schema=order.avsc")
    try:
        return fastavro.parse_schema(msgspec.json.decode(Path(path).read_bytes()))
    except OSError as error:
        raise WrongAddress(f"`{address}`: cannot read the schema {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, msgspec.DecodeError, fastavro.schema.SchemaParseException) as error:
        raise WrongAddress(f"`{address}`: {path} is no schema of Avro: {error}") from None
