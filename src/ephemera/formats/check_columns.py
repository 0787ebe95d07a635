"""This module checks that tables and files with columns offer what a program declares.

A type of events may come from any file, table or frame. An attribute that none of those offers that hold events of its
type would be null in all of them, and that is a mistake more often than not: so it is an error, unless the run is
lenient. Whether something holds events of a type is looked up only where a column is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ephemera.base.errors import EphemeraError
from ephemera.base.suggest import meant_by, suggestion
from ephemera.rules.nodes import Catalogue
from ephemera.terms.errors import excerpt

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


def shown_columns(columns: Iterable[str]) -> str:
    """Columns for people, not too many of them."""
    names = [excerpt(column) for column in columns]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _columns(offer: Offer) -> str:
    return f"  the columns are {shown_columns(offer.columns)}"


# ---- what columns mean ------------------------------------------------------------------------------------------


def only_label(catalogue: Catalogue) -> str:
    """The type of the rows of a table that does not name it."""
    labels = list(catalogue.events)
    if len(labels) > 1:
        labels = [label for label in labels if label not in catalogue.derived]
    if len(labels) != 1:
        raise ValueError(
            f"the table has no column `event`, and the program declares {len(labels) or 'no'} types of input; "
            "add the column, or declare exactly one with `EVENT`"
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
    is_attribute = any("time" in schema.names for schema in catalogue.events.values())
    if {"begin", "end"} <= given and ("time" not in given or is_attribute):
        return ("begin", "end")
    return ("time",) if "time" in given else ()


def stamp_columns(names: Iterable[str], catalogue: Catalogue) -> tuple[str, ...]:
    """All columns that say when, of whatever type a row is."""
    given = list(names)
    from_outside = [label for label in catalogue.events if label not in catalogue.derived] or list(catalogue.events)
    labels = [*(from_outside or [""]), *(label for source in catalogue.sources for label in source.carries)]
    found = dict.fromkeys(name for label in labels for name in time_columns(given, catalogue, label))
    if not found:
        raise ValueError("the table does not say when events happen; name a column `time`, or two `begin` and `end`")
    return tuple(found)
