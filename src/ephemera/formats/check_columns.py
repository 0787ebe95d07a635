"""This module checks that tables and files with columns offer what a program declares.

A type of events may come from any file, table or frame. An attribute that none of those offers that hold events of its
type would be null in all of them, and that is a mistake more often than not: so it is an error, unless the run is
lenient. Whether something holds events of a type is looked up only where a column is missing.

A file of a stream that carries one type need not name it: the catalogue that it is read by is that of the stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ephemera.base.errors import EphemeraError
from ephemera.base.suggest import meant_by, suggestion
from ephemera.rules.nodes import Catalogue, Schema
from ephemera.terms.errors import excerpt

OTHERWISE = (
    "rename one of them, or name the column behind `FROM`; or `--lenient`, in Python `lenient=True`, reads what is "
    "missing as null"
)


class WrongColumns(EphemeraError, ValueError):
    """Input whose columns are not those that a program declares."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A file, table or frame with columns: what it is called, which they are, and of which types it holds events."""

    name: str
    columns: Sequence[str]
    holds: Callable[[str], bool] = lambda _label: True
    only: str | None = None
    """The type of all rows that name none, if it is of a stream that carries one."""

    def label(self, catalogue: Catalogue) -> str | None:
        """The type of all rows, if they do not name it themselves."""
        return row_label(self.columns, catalogue.carrying(self.only or catalogue.only))


def check_columns(offers: Sequence[Offer], catalogue: Catalogue, *, lenient: bool = False) -> None:
    """Raises what is wrong with the columns of an input, all of it at once."""
    found = [text for offer in offers for text in _unusable(offer, catalogue)]
    if not found and not lenient:
        found = [text for label in catalogue.events for text in _missing(offers, label, catalogue)]
    if found:
        raise WrongColumns("\n".join(found))


def refused_types(columns: Sequence[str], name: str, catalogue: Catalogue) -> dict[str, str]:
    """The types of which no row with these columns is an event, since one for an attribute is missing, and which."""
    found: dict[str, str] = {}
    for label, schema in catalogue.events.items():
        lacking = next((a for a, c in zip(schema.names, schema.columns, strict=True) if c not in columns), None)
        if lacking is not None and label not in catalogue.derived:
            found[label] = told_missing(lacking, name, columns, schema)
    return found


def _unusable(offer: Offer, catalogue: Catalogue) -> Iterable[str]:
    """Why nothing of an input can be read: it does not say what or when, or says it twice."""
    catalogue = catalogue.carrying(offer.only or catalogue.only)
    for name in (n for n, count in Counter(offer.columns).items() if count > 1 and n):
        yield f"{offer.name} has several columns `{name}`; rename all but one"
    if "event" not in offer.columns and catalogue.only is None:
        attributes = {name for schema in catalogue.events.values() for name in schema.columns}
        meant = suggestion("event", [name for name in offer.columns if name not in attributes])
        if meant is not None and meant.strip().lower() == "event":
            yield f"no column `event` in {offer.name}{_meant('event', [meant])}\n{_columns(offer)}"
        else:
            try:
                only_label(catalogue)
            except ValueError as error:
                yield f"{offer.name}: {error}{_meant('event', offer.columns)}\n{_columns(offer)}"
    try:
        stamp_columns(offer.columns, catalogue)
    except ValueError as error:
        of_all = [name for source in catalogue.sources for name in source.time]
        declared = of_all if catalogue.only is None else list(catalogue.stamps(catalogue.only))
        meant = next((m for m in (_meant(n, offer.columns) for n in (*declared, "time", "begin")) if m), "")
        yield f"{offer.name}: {error}{meant}\n{_columns(offer)}"


def _missing(offers: Sequence[Offer], label: str, catalogue: Catalogue) -> Iterable[str]:
    """The attributes of a type that nothing offers which holds events of it."""
    if label in catalogue.derived:
        return
    schema = catalogue.events[label]
    may_hold = [o for o in offers if o.label(catalogue) in (None, label)]
    columns_of = dict(zip(schema.names, schema.columns, strict=True))
    partly = [n for n, c in columns_of.items() if not all(c in o.columns for o in may_hold)]
    if not partly:
        return
    holding = [o for o in may_hold if o.label(catalogue) == label or o.holds(label)]
    for name in (n for n in partly if holding and not any(columns_of[n] in o.columns for o in holding)):
        where = holding[0].name if len(holding) == 1 else f"any of {', '.join(o.name for o in holding[:5])}"
        columns = list(dict.fromkeys(column for o in holding for column in o.columns))
        from_ = "" if columns_of[name] == name else f' FROM "{columns_of[name]}"'
        yield (
            f"{told_missing(name, where, columns, schema)}\n"
            f"  the program declares it: EVENT {label}(… {name}{from_} …)\n"
            f"  the columns are {shown_columns(columns)}\n  {OTHERWISE}"
        )


def told_missing(attribute: str, where: str, columns: Sequence[str], schema: Schema) -> str:
    """That the column of an attribute is not there, and which may have been meant: none that another attribute has."""
    name = schema.columns[schema.names.index(attribute)]
    shown = f"`{name}`" if name == attribute else f"`{name}` (for `{attribute}`)"
    return f"no column {shown} in {where}{_meant(name, [column for column in columns if column not in schema.columns])}"


def _meant(name: str, columns: Sequence[str]) -> str:
    if len(columns) == 1 and any(mark in columns[0] for mark in ";\t|"):
        return "; there is one column: are cells divided by commas?"
    meant = meant_by(name, columns)
    return "" if meant is None else f"; did you mean `{meant}`?"


def shown_columns(columns: Iterable[str]) -> str:
    """Columns for people, not too many of them."""
    names = [excerpt(column) for column in columns]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _columns(offer: Offer) -> str:
    return f"  the columns are {shown_columns(offer.columns)}"


# ---- what columns mean ------------------------------------------------------------------------------------------


def row_label(columns: Collection[str], catalogue: Catalogue) -> str | None:
    """The type of all rows with these columns; None if `event` is one of them and names it, row by row.

    In a stream that carries one type that column does not, if the type has an attribute that is read from it.
    """
    own = catalogue.columns(catalogue.only) if catalogue.only is not None else None
    return None if "event" in columns and "event" not in (own or ()) else only_label(catalogue)


def only_label(catalogue: Catalogue) -> str:
    """The type of the rows of a table that does not name it."""
    if catalogue.only is not None:
        return catalogue.only
    labels = list(catalogue.events)
    if len(labels) > 1:
        labels = [label for label in labels if label not in catalogue.derived]
    if len(labels) != 1:
        raise ValueError(
            f"the table has no column `event`, and the program declares {len(labels) or 'no'} types of input; "
            "add the column, declare exactly one with `EVENT`, or let one stream alone read it that carries one type: "
            "`STREAM … FROM … CARRIES …;`"
        )
    return labels[0]


def time_columns(names: Iterable[str], catalogue: Catalogue, label: str) -> tuple[str, ...]:
    """The columns that say when events of a type happen: those that its stream declares, else the usual ones.

    `time` may also be an attribute, and then `begin` and `end` come first. Without any there are none.
    """
    given = set(names)
    declared = catalogue.stamps(label)
    if declared and given.issuperset(declared):
        return declared
    is_attribute = any("time" in schema.columns for schema in catalogue.events.values())
    if {"begin", "end"} <= given and ("time" not in given or is_attribute):
        return ("begin", "end")
    return ("time",) if "time" in given else ()


def stamp_columns(names: Iterable[str], catalogue: Catalogue) -> tuple[str, ...]:
    """All columns that say when, of whatever type a row is."""
    given = list(names)
    if catalogue.only is not None and (label := row_label(given, catalogue)) is not None:
        if found_by := time_columns(given, catalogue, label):
            return found_by
        asked = catalogue.stamps(label)
        raise ValueError(
            f"the stream declares `TIME {', '.join(asked)}`, and there is no such column"
            if asked
            else "the table does not say when events happen; name a column `time`, or two `begin` and `end`, or say "
            "which it is: `STREAM … TIME …;`"
        )
    from_outside = [label for label in catalogue.events if label not in catalogue.derived] or list(catalogue.events)
    labels = [*(from_outside or [""]), *(label for source in catalogue.sources for label in source.carries)]
    found = dict.fromkeys(name for label in labels for name in time_columns(given, catalogue, label))
    if not found:
        raise ValueError("the table does not say when events happen; name a column `time`, or two `begin` and `end`")
    return tuple(found)
