"""This module names the attributes of tuples, which are the columns of batches, and alone takes such names apart.

| name           | type         | what it holds                                                        |
|----------------|--------------|----------------------------------------------------------------------|
| `o.s`, `o.e`   | `Stamp`      | when the event `o` begins and ends                                   |
| `o.ref`        | `Reference`  | which event it is                                                    |
| `o.event`      | `Occurrence` | the event itself, where engines need it                              |
| `x`            | `Variable`   | the value of a variable                                              |
| `#1`, `#o#1`   | `Variable`   | the value of a constant, where rules that are alike have others      |
| `@0`           |              | a value of a flat event                                              |
| `$term`, `#row`|              | what the author of a rule never sees                                 |
| `@1700000000`  | `Moment`     | nothing: a fixed time, which stands in formulas where stamps stand   |

Names are texts, so that tables find them as fast as Python can (those that every row has are interned), and Arrow and
stored state have them as they are; the types are for the type checker alone. No name can be read in two ways: only
names of events and variables are somebody else's choice, the former stand before the last dot, and a variable whose
name is more than a word has it in backquotes, as in the program (`variable`), where no name has a backquote in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from sys import intern
from typing import Any, NewType, TypeAlias, TypeGuard

from ephemera.syntax.lexer import is_plain_name

Stamp = NewType("Stamp", str)
Reference = NewType("Reference", str)
Occurrence = NewType("Occurrence", str)
Variable = NewType("Variable", str)
Moment = NewType("Moment", str)

OfEvent: TypeAlias = Stamp | Reference | Occurrence
Time: TypeAlias = Stamp | Moment
"""What differences of times are between."""

EVENT = "$"
"""What the event of a stream or query is called before a rule names it."""
TERM = "$term"
"""The attribute of streams and rules that holds the data of an event."""

_BLANK = re.compile(r"_[0-9]+")
_CONSTANT = re.compile(r"#(?:(.+)#)?([0-9]+)", re.DOTALL)


# ---- making names ------------------------------------------------------------------------------------------


def begin(event: str) -> Stamp:
    """The stamp of an event's begin."""
    return Stamp(intern(f"{event}.s"))


def end(event: str) -> Stamp:
    """The stamp of an event's end."""
    return Stamp(intern(f"{event}.e"))


def reference(event: str) -> Reference:
    """The attribute that says which event it is."""
    return Reference(intern(f"{event}.ref"))


def occurrence(event: str) -> Occurrence:
    """The attribute that holds the event itself, where engines need it."""
    return Occurrence(f"{event}.event")


def moment(microseconds: int) -> Moment:
    """A fixed time, where formulas have stamps."""
    return Moment(f"@{microseconds}")


def position(k: int) -> str:
    """The column of the k-th value of a flat event."""
    return intern(f"@{k}")


def hidden(what: str) -> str:
    """A column that an engine makes for itself."""
    return f"#{what}"


def variable(name: str) -> Variable:
    """The attribute of a variable that an author has named so.

    >>> variable("id"), variable("o.s"), variable("_3")
    ('id', '`o.s`', '`_3`')
    """
    return Variable(name if is_plain_name(name) and not _BLANK.fullmatch(name) else f"`{name}`")


def event(name: str) -> str:
    """What an event or timer is called that an author has named so: the same, unless we call others so.

    Those are the events of streams (`$`) and the inputs of algebra expressions (`e/1`).
    """
    return name if name != EVENT and expression_of(name) is None else f"`{name}`"


def variables(names: Iterable[str]) -> tuple[Variable, ...]:
    """The variables of a rule whose variables are called as their attributes are, in the order of their names."""
    return tuple(map(Variable, sorted(names)))


def constant(place: int, event: str | None = None) -> Variable:
    """The variable that stands for a constant: the one in a place of the pattern of an event, or just one of several.

    >>> constant(2), constant(1, "o")
    ('#2', '#o#1')
    """
    return Variable(f"#{place}" if event is None else f"#{event}#{place}")


def joined(events: Iterable[str]) -> str:
    """What a stored join of some events is called where a rule reads it: no author can name an event so.

    >>> joined(["o", "s"])
    '`o,s`+'
    """
    return f"`{','.join(events)}`+"


def primitive(expression: str, number: int) -> str:
    """The event of the n-th input of an algebra expression, counted from 1."""
    return f"{expression}/{number}"


# ---- telling them apart ------------------------------------------------------------------------------------


def is_stamp(name: str) -> TypeGuard[Stamp]:
    """Whether an attribute is the begin or end of something."""
    return name.endswith((".s", ".e"))


def is_end(name: str) -> TypeGuard[Stamp]:
    """Whether it is the end of something."""
    return name.endswith(".e")


def is_reference(name: str) -> TypeGuard[Reference]:
    """Whether it says which event it is."""
    return name.endswith(".ref")


def is_occurrence(name: str) -> TypeGuard[Occurrence]:
    """Whether it holds events themselves."""
    return name.endswith(".event")


def is_of_event(name: str) -> TypeGuard[OfEvent]:
    """Whether it is one of these, and so no data."""
    return name.endswith((".s", ".e", ".ref", ".event"))


def is_moment(time: str) -> TypeGuard[Moment]:
    """Whether it is a fixed time, and no stamp."""
    return time[0] == "@" and not is_stamp(time)


def is_position(name: str) -> bool:
    """Whether it is a value of a flat event."""
    return name[0] == "@" and name[1:].isdecimal()


def is_variable(name: str) -> TypeGuard[Variable]:
    """Whether it is a variable that an author has named, or a blank of a pattern."""
    return name[0] == name[-1] == "`" or ("." not in name and name[0] not in "#$" and not is_position(name))


def is_constant(name: str) -> bool:
    """Whether it is a variable that stands for a constant."""
    return _CONSTANT.fullmatch(name) is not None


def is_blank(name: str) -> bool:
    """Whether it is a variable that stands for `_`; no author can name one so."""
    return _BLANK.fullmatch(name) is not None


def is_joined(event: str) -> bool:
    """Whether an event is a stored join of several, whose stamps stand beside its own."""
    return event.endswith("`+")


def is_unnamed(event: str) -> bool:
    """Whether an event has its name from us: a number, or none at all."""
    return event == EVENT or (event.startswith(EVENT) and event[1:].isdecimal())


# ---- taking them apart -------------------------------------------------------------------------------------


def microseconds(time: Moment) -> int:
    """When a fixed time is."""
    return int(time[1:])


def event_of(name: OfEvent) -> str:
    """The event that an attribute is of."""
    return name.rpartition(".")[0]


def side_of(stamp: Stamp) -> str:
    """`s` for the begin of an event, `e` for its end."""
    return stamp[-1]


def moved(name: Stamp, event: str) -> Stamp:
    """The same stamp of another event."""
    return Stamp(f"{event}.{side_of(name)}")


def place_of(constant: str) -> tuple[str, int] | None:
    """The event and the place in its pattern that a constant stands in; None for one of a condition."""
    found = _CONSTANT.fullmatch(constant)
    return (found[1], int(found[2])) if found is not None and found[1] is not None else None


def expression_of(event: str) -> tuple[str, int] | None:
    """The algebra expression that an event is an input of, and its number; None if it is none."""
    name, _, number = event.rpartition("/")
    return (name, int(number)) if name and number.isdecimal() else None


def records_of(point: str, expression: str) -> str:
    """What is called that an algebra expression of a rule keeps."""
    return f"{point}/{expression}#"


def reserve_of(label: str) -> str:
    """The history of events of a type that are kept for rules that come later."""
    return f"RESERVE {label}"


def is_reserve(history: str) -> bool:
    """Whether a history is one of those."""
    return history.startswith("RESERVE ")


def as_written(name: str) -> str:
    """What the author of a rule calls a variable."""
    return name[1:-1] if name[0] == "`" else name


def variables_in(t: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a tuple with their values; it is asked of every row, so it calls nothing."""
    return {n: v for n, v in t.items() if n[0] == n[-1] == "`" or ("." not in n and n[0] not in "#$")}
