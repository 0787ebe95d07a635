"""This module adds to rule bodies what filters by values: comparisons, null and undefined values, tables."""

from __future__ import annotations

import json

from ephemera.terms.atoms import attributes_term
from ephemera.terms.values import Term, Value

from .drafts import Body, literal
from .streams import NUMBERS, VALUES


def comparison(body: Body) -> None:
    """Conditions on values, joined by `and`, `or` and `not`."""
    if not body.draft.has_room():
        return
    names = [n for n, v in body.variables.items() if isinstance(v, int | str)]
    if not names:
        return
    name = body.dice.pick(names)
    value = body.variables[name]
    body.show(name)
    other = literal(body.dice.pick([v for v in VALUES if v != value]))
    match body.chosen({"comparison": 3, "and": 3, "or": 3, "not": 3}):
        case "and" if isinstance(value, int):
            body.miss_variable(name, value + 1)
            second = body.dice.pick([f"{body.var(name)} < {value + 1}", f"{body.var(name)} <= {value}"])
            first = f"{body.var(name)} {body.dice.pick(('>=', '='))} {value}"
            both = f"({body.var(name)} > {value - 1} and {second})"
            body.condition(body.draft.mark("and", both, f"{body.var(name)} > {value - 1}"))
            if body.dice.chance(20):
                body.condition(body.draft.mark("comparison", first))
        case "or":
            one = _comparison(body, name)
            false = f"{body.var(name)} = {other}"
            body.condition(body.draft.mark("or", f"({false} or {one})", false))
        case "not":
            body.miss_variable(name, json.loads(other))
            body.condition(body.draft.mark("not", "not ") + f"{body.var(name)} = {other}")
        case _:
            body.condition(body.draft.mark("comparison", _comparison(body, name)))


def _comparison(body: Body, name: str) -> str:
    """A comparison that the witness passes and a near miss does not."""
    value = body.variables[name]
    spelled = body.var(name)
    others = [n for n in body.numbers() if n != name] if isinstance(value, int) else []
    if others and body.dice.chance(30):
        other = body.dice.pick(others)
        a, b = value, body.variables[other]
        operator = "=" if a == b else "<" if a < b else ">"  # type: ignore[operator]
        return f"{spelled} {operator} {body.var(other)}"
    if isinstance(value, int):
        limits = {"<": value + 1, ">": value - 1, "<=": value, "=": value}
        operator = body.dice.pick(tuple(limits))
        body.miss_variable(name, limits[operator] if operator in "<>" else value + 1)
        return f"{spelled} {operator} {limits[operator]}"
    body.miss_variable(name, body.dice.pick(NUMBERS))
    return f"{spelled} = {literal(value)}" if body.dice.chance(60) else f'{spelled} > "a"'


def absent_value(body: Body) -> None:
    """A term that must lack the value of a variable; a near miss has it."""
    trees = [s for s in body.draft.shapes.values() if s.kind == "tree"]
    names = [n for n, v in body.variables.items() if isinstance(v, int | str)]
    if not trees or not names or not body.draft.has_room(2):
        return
    name = body.dice.pick(names)
    value = body.variables[name]
    others = [v for v in VALUES if v != value]
    event = body.draft.fact(body.dice.pick(trees).label, values=(body.dice.pick(others),))
    if event is None:
        return
    identifier = body.fresh("e")
    body.facts[identifier], body.times[identifier] = event, body.draft.times(event)
    absent = body.draft.mark("without a variable", f"without k {{ var {name} }}")
    prefix = "" if body.arrow else "event "
    body.items.append(f"{prefix}{identifier}: {event.term.label} {{{{ {absent} }}}}")
    body.head += [f"begin({identifier})", f"end({identifier})"]
    children = (*event.term.children, Term("k", (value,)))
    body.miss(event, Term(event.term.label, children, event.term.ordered, event.term.attributes))


def null(body: Body) -> None:
    """A test for null, with events that have it and that do not."""
    if not body.draft.has_room(2):
        return
    flat = [s for s in body.draft.shapes.values() if s.kind != "tree" and s.arity]
    if not flat:
        return
    chosen = body.dice.pick(flat)
    wanted = body.dice.chance(60)
    values: list[Value] = [None if wanted else 1, *([2] if chosen.arity > 1 else [])]
    event = body.draft.fact(chosen.label, values=values)
    if event is None:
        return
    name, variable = body.fresh("e"), body.fresh("x")
    body.facts[name], body.times[name] = event, body.draft.times(event)
    body.draft.fact(chosen.label, body.times[name], [1 if wanted else None, *([2] if chosen.arity > 1 else [])])
    arguments = [body.var(variable), *("_" for _ in range(chosen.arity - 1))]
    body.items.append(f"{'' if body.arrow else 'event '}{name}: {chosen.label}({', '.join(arguments)})")
    test = f"{body.var(variable)} is {'null' if wanted else 'not null'}"
    body.condition(body.draft.mark("is null", test))
    body.head.append(body.draft.mark("null", body.var(variable), "0"))


def undefined(body: Body) -> None:
    """A comparison or a division that has no value for a near miss."""
    if not body.draft.has_room():
        return
    names = body.numbers()
    if not names:
        return
    name = body.dice.pick(names)
    body.show(name)
    value = body.variables[name]
    spelled = body.var(name)
    if body.dice.chance(50):
        body.miss_variable(name, "x")
        body.condition(body.draft.mark("undefined", f"not {spelled} > {9}"))
    else:
        hole = 1 if value != 1 else 2
        body.miss_variable(name, hole)
        body.head.append(body.draft.mark("undefined", f"6 / ({spelled} - {hole})", "0"))


# ---- tables ------------------------------------------------------------------------------------------------


def table(body: Body) -> None:
    """Rows of a table that join with the witness, or the absence of such a row."""
    if not body.draft.has_room():
        return
    names = [n for n, v in body.variables.items() if isinstance(v, int | str)]
    if not names:
        return
    name = body.dice.pick(names)
    body.show(name)
    value = body.variables[name]
    rows = body.draft.tables.setdefault("t", [])
    other = body.dice.pick([v for v in VALUES if v != value])
    if body.chosen({"table": 1, "absent row": 1}) == "table":
        variable = body.fresh("x")
        found = body.dice.pick(VALUES)
        rows.append(attributes_term("t", [("k", value), ("w", found)]))
        body.miss_variable(name, other)
        written = f"t({body.var(name)}, {body.var(variable)})"
        body.variables[variable] = found
        body.place(written, "table")
    else:
        rows.append(attributes_term("t", [("k", other), ("w", 0)]))
        body.miss_variable(name, other)
        written = f"not t({body.var(name)}, 0)"
        body.items.append(body.draft.mark("absent row", written))
