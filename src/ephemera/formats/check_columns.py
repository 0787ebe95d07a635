"""This module checks before a run that the columns of its input offer what a program declares.

A type of events may come from any file, table or frame. An attribute that none of those offers that hold events of its
type would be null in all of them, and that is a mistake more often than not: so it is an error, unless the run is
lenient. Whether something holds events of a type is looked up only where a column is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ephemera.base.errors import EphemeraError
from ephemera.base.suggest import meant_by, suggestion
from ephemera.formats.csv_rows import shown_columns
from ephemera.formats.decode_arrow import only_label, stamp_columns
from ephemera.rules.nodes import Catalogue

OTHERWISE = "rename one of them; or `--lenient`, in Python `lenient=True`, reads what is missing as null"


class WrongColumns(EphemeraError, ValueError):
    """Input whose columns are not those that a program declares."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A file, table or frame with columns: what it is called, which they are, and of which types it holds events."""

    name: str
    columns: Sequence[str]
    holds: Callable[[str], bool] = lambda _label: True


def check_columns(offers: Sequence[Offer], catalogue: Catalogue, *, lenient: bool = False) -> None:
    """Raises what is wrong with the columns of an input, all of it at once."""
    found = [text for offer in offers for text in _unusable(offer, catalogue)]
    if not found and not lenient:
        found = [text for label in catalogue.events for text in _missing(offers, label, catalogue)]
    if found:
        raise WrongColumns("\n".join(found))


def refused_types(columns: Sequence[str], name: str, catalogue: Catalogue) -> dict[str, str]:
    """The types of which no row with these columns is an event, since one for an attribute is missing, and which."""
    lacking = {label: [n for n in catalogue.attributes(label) or () if n not in columns] for label in catalogue.events}
    return {
        label: told_missing(names[0], name, columns, catalogue.attributes(label) or ())
        for label, names in lacking.items()
        if names and label not in catalogue.derived
    }


def offer_of(table: pa.Table, name: str) -> Offer:
    """What a table offers."""

    def holds(label: str) -> bool:
        column = table.column("event")
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return bool(pc.any(pc.equal(column.cast(pa.large_string()), label)).as_py())

    return Offer(name, table.column_names, holds)


def _unusable(offer: Offer, catalogue: Catalogue) -> Iterable[str]:
    """Why nothing of an input can be read: it does not say what or when, or says it twice."""
    for name in (n for n, count in Counter(offer.columns).items() if count > 1 and n):
        yield f"{offer.name} has several columns `{name}`; rename all but one"
    if "event" not in offer.columns:
        attributes = {name for schema in catalogue.events.values() for name in schema.names}
        meant = suggestion("event", [name for name in offer.columns if name not in attributes])
        if meant is not None and meant.strip().lower() == "event":
            yield f"{told_missing('event', offer.name, [meant])}\n{_columns(offer)}"
        else:
            try:
                only_label(catalogue)
            except ValueError as error:
                yield f"{offer.name}: {error}{_meant('event', offer.columns)}\n{_columns(offer)}"
    try:
        stamp_columns(offer.columns, catalogue)
    except ValueError as error:
        declared = [name for source in catalogue.sources for name in source.time]
        meant = next((m for m in (_meant(n, offer.columns) for n in (*declared, "time", "begin")) if m), "")
        yield f"{offer.name}: {error}{meant}\n{_columns(offer)}"


def _missing(offers: Sequence[Offer], label: str, catalogue: Catalogue) -> Iterable[str]:
    """The attributes of a type that nothing offers which holds events of it."""
    if label in catalogue.derived:
        return
    attributes = catalogue.attributes(label) or ()
    may_hold = [o for o in offers if "event" in o.columns or only_label(catalogue) == label]
    partly = [n for n in attributes if not all(n in o.columns for o in may_hold)]
    if not partly:
        return
    holding = [o for o in may_hold if "event" not in o.columns or o.holds(label)]
    for name in (n for n in partly if holding and not any(n in o.columns for o in holding)):
        where = holding[0].name if len(holding) == 1 else f"any of {', '.join(o.name for o in holding[:5])}"
        columns = list(dict.fromkeys(column for o in holding for column in o.columns))
        yield (
            f"{told_missing(name, where, columns, attributes)}\n  the program declares it: EVENT {label}(… {name} …)\n"
            f"  the columns are {shown_columns(columns)}\n  {OTHERWISE}"
        )


def told_missing(name: str, where: str, columns: Sequence[str], used: Collection[str] = ()) -> str:
    """That a column is not there, and which may have been meant: none that is `used` under its own name."""
    return f"no column `{name}` in {where}{_meant(name, [column for column in columns if column not in used])}"


def _meant(name: str, columns: Sequence[str]) -> str:
    meant = meant_by(name, columns)
    if meant is not None:
        return f"; did you mean `{meant}`?"
    if len(columns) == 1 and any(mark in columns[0] for mark in ";\t|"):
        return "; there is one column: are cells divided by commas?"
    return ""


def _columns(offer: Offer) -> str:
    return f"  the columns are {shown_columns(offer.columns)}"
