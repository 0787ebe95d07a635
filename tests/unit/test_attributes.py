"""This module tests the names of attributes: nobody can take one for another, and no author can make one of ours."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

import ephemera
from ephemera.algebra import attributes
from ephemera.algebra.attributes import (
    TERM,
    as_written,
    begin,
    constant,
    end,
    event_of,
    expression_of,
    hidden,
    is_constant,
    is_moment,
    is_occurrence,
    is_reference,
    is_stamp,
    is_variable,
    microseconds,
    moment,
    moved,
    occurrence,
    place_of,
    primitive,
    reference,
    variable,
    variables_in,
)

SOURCE = Path(attributes.__file__).parents[1]
NAMES = (
    *("x", "@x", "a-b", "o.s", "o.e", "p.s", "p.e", "w.e", "o.ref", "p.event", ".s", "a.b", "a/b", "e/1.s", "$", "$1"),
    *("$term", "$.s", "$.e", "$.ref", "$.event", "#", "#0", "#1", "#o#1", "#row", "#place", "#count", "#member"),
    *("#sum q", "@", "@0", "@0.s", "_1", "_3", "v1", "e1.s", "ä.s", " "),
)
"""Names of variables and events, most of them to be written in backquotes."""
RUN = (
    *(
        "x",
        "@x",
        "o.s",
        "p.e",
        "w.e",
        "o.ref",
        "p.event",
        "a.b",
        "a/b",
        "$",
        "$term",
        "$.s",
        "#0",
        "#1",
        "#o#1",
        "#row",
    ),
    *("#place", "#count", "#member", "#sum q", "@0", "_1", "v1"),
)
"""Those of them that programs are run with."""

RULES = {
    "join": "late(`{x}`) <- o: order(`{x}`), p: paid(`{x}`, _), {{o, p}} within 10s, o before p;",
    "absence": "late(`{x}`) <- o: order(`{x}`), w: extend(o, 5s), while w: not paid(`{x}`, _);",
    "sum": "late(`{x}`, sum(q)) <- o: order(`{x}`), w: extend(o, 5s), while w: collect paid(`{x}`, q);",
    "summed": "late(y, sum(`{x}`)) <- o: order(y), w: extend(o, 5s), while w: collect paid(y, `{x}`);",
    "count": "late(y, count(`{x}`)) <- o: order(y), w: extend(o, 5s), while w: collect optional paid(y, `{x}`);",
    "alike": "one(`{x}`) <- o: order(`{x}`), p: paid(`{x}`, 4), {{o, p}} within 9s, `{x}` > 3;"
    "two(`{x}`) <- o: order(`{x}`), p: paid(`{x}`, 5), {{o, p}} within 9s, `{x}` > 5;",
    "algebra": "late(`{x}`, q) <- e: algebra ((order(`{x}`) ; paid(`{x}`, q))[9s]);",
    "blank": "late(q) <- o: pair(`{x}`, `{x}`, _), p: paid(_, q), {{o, p}} within 9s;",
}
EVENTS = [
    *({"event": "order", "time": t, "data": [x]} for t, x in ((1, 7), (2, 8))),
    *({"event": "pair", "time": t, "data": [a, b, a]} for t, a, b in ((2, 1, 1), (2, 1, 2))),
    *({"event": "paid", "time": t, "data": [x, q]} for t, x, q in ((3, 7, 4), (4, 7, 5), (5, 9, 5))),
]


ENGINES = ("oracle", "local")
EVENT_RULES = {
    "join": "late(x) <- {o}: order(x), p: paid(x, _), {{{o}, p}} within 10s, {o} before p;",
    "window": "late(x, sum(q)) <- i: order(x), {o}: extend(i, 5s), while {o}: collect paid(x, q);",
    "collection": "late(x) <- i: order(x), w: extend(i, 5s), while w: collect {o}: paid(x, q) where {{ {o} after i }};",
    "alike": "one(x) <- {o}: order(x), p: paid(x, 4), {{{o}, p}} within 9s;"
    "two(x) <- {o}: order(x), p: paid(x, 5), {{{o}, p}} within 9s;",
    "algebra": "late(x, q) <- {o}: algebra ((order(x) ; paid(x, q))[9s]), i: order(x), {{{o}, i}} within 9s;",
    "clock": "late(x) <- {o}: timer:datetime{{{{second{{2}}}}}}, p: order(x), {{{o}, p}} within 9s;",
    "recursion": "late(x) <- order(x); late(y) <- {o}: late(x), p: paid(x, y), {{{o}, p}} within 9s;",
    "input": "late(x) <- e: algebra ((order(x) ; paid(x, _))[9s]), {o}: order(x), {{e, {o}}} within 9s;",
    "unnamed": "late(x) <- {o}: order(x), paid(x, _), w: extend({o}, 5s);",
    "moment": 'late(x) <- {o}: order(x), {o} after datetime("1970-01-01T00:00:01Z");',
}


@pytest.mark.parametrize("rule", RULES)
def test_a_variable_may_be_called_anything(rule: str) -> None:
    declared = "TIME UNIT 1 sec; EVENT order(a: int); EVENT paid(a: int, q: int); EVENT pair(a: int, b: int, c: int);\n"
    programs = {name: ephemera.compile(declared + RULES[rule].format(x=name)) for name in RUN}
    answers = programs["x"].run(EVENTS, engine="oracle", allow_unbounded=True)
    assert answers
    for name, program in programs.items():
        assert program.run(EVENTS, engine="local", allow_unbounded=True) == answers, name


@pytest.mark.parametrize("rule", EVENT_RULES)
def test_an_event_may_be_called_anything(rule: str) -> None:
    declared = "TIME UNIT 1 sec; EVENT order(a: int); EVENT paid(a: int, q: int);\n"
    names = ("o", *RUN[1:], "$0", "$1", "$a0", "$t0", "e/1", "e/2")
    programs = {name: ephemera.compile(declared + EVENT_RULES[rule].format(o=f"`{name}`")) for name in names}
    programs["@o"] = ephemera.compile(declared + EVENT_RULES[rule].format(o="@o"))
    used = [event for event in EVENTS if event["event"] != "pair"]
    answers = programs["o"].run(used, engine="oracle", allow_unbounded=True)
    assert answers
    for name, program in programs.items():
        for engine in ENGINES:
            assert program.run(used, engine=engine, allow_unbounded=True) == answers, (name, engine)


@pytest.mark.parametrize(("head", "more"), [("x / 0", ""), ("sum(q) / 0", ", while w: collect paid(x, q)")])
def test_a_head_without_a_value_says_nothing_of_events_whatever_they_are_called(head: str, more: str) -> None:
    for name in ("o", *RUN[1:]):
        rule = f"TIME UNIT 1 sec; late({head}) <- `{name}`: order(x), w: extend(`{name}`, 5s){more};"
        run = {e: ephemera.compile(rule).run_all(EVENTS, engine=e, allow_unbounded=True) for e in ENGINES}
        told = {e: [dict(letter.variables) for letter in one.undefined] for e, one in run.items()}
        assert told["local"] == told["oracle"] != [], name


def test_a_head_without_a_value_says_what_was_bound_as_its_author_called_it() -> None:
    program = ephemera.compile("TIME UNIT 1 sec; late(`o.s` / 0) <- o: order(`o.s`);")
    for engine in ("oracle", "local"):
        letters = program.run_all(EVENTS[:1], engine=engine).undefined
        assert [dict(letter.variables) for letter in letters] == [{"o.s": 7}]


@pytest.mark.parametrize(("name", "read"), [("x", {"a", "b"}), ("_1", {"a", "b"}), ("_", set())])
def test_what_an_author_calls_a_number_after_an_underscore_is_read(name: str, read: set[str]) -> None:
    declared = "EVENT move(a: int, b: int); EVENT tick(n: int);"
    program = ephemera.compile(f"{declared} stays(n) <- m: move({name}, {name}), t: tick(n), {{m, t}} within 5;")
    columns = program._compiled.physical.rewritten.columns
    assert columns is not None
    assert columns["move"] == read


def test_every_name_is_of_one_kind() -> None:
    kinds = (is_stamp, is_reference, is_occurrence, is_variable, is_constant)
    made: dict[Callable[[str], bool] | None, list[str]] = {
        is_stamp: [side(name) for side in (begin, end) for name in (*NAMES, primitive("e", 1))],
        is_reference: [reference(name) for name in NAMES],
        is_occurrence: [occurrence(name) for name in NAMES],
        is_variable: [variable(name) for name in NAMES],
        is_constant: [constant(3), *(constant(3, name) for name in NAMES)],
        None: [TERM, *(hidden(what) for what in ("row", "count", *(f"sum {variable(n)}" for n in NAMES)))],
    }
    for kind, names in made.items():
        for name in names:
            assert [k for k in kinds if k(name)] == ([kind] if kind is not None else []), name
            assert bool(variables_in({name: 0})) is (kind is is_variable), name
    everything = [name for names in made.values() for name in names]
    assert len(set(everything)) == len(everything)


def test_names_are_taken_apart_as_they_were_made() -> None:
    for name, other in product(NAMES, NAMES):
        assert [event_of(side(name)) for side in (begin, end)] == [name, name]
        assert event_of(reference(name)) == event_of(occurrence(name)) == name
        assert moved(begin(name), other) == begin(other)
        assert moved(end(name), other) == end(other)
        assert as_written(variable(name)) == name
        assert place_of(constant(12, name)) == (name, 12)
        assert expression_of(primitive(name, 2)) == (name, 2)
        assert not is_moment(begin(name))
    assert (is_moment(moment(-5)), microseconds(moment(-5)), place_of(constant(1))) == (True, -5, None)


MARKS = {"@", "#", "$", "$.", "`", ".s", ".e", ".ref", ".event"}
"""What names of attributes begin or end with."""
TAKES_APART = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit"}
OTHER_NAMES = {
    ("engine/state/identity.py", "#"): "names of rules: the second one that derives a label is `label#2`",
    ("engine/change/compared.py", "#"): "the same, where a message has no label",
    ("algebra/explain.py", "#"): "inputs of an algebra expression, as people read them",
    ("algebra/explain.py", "@"): "a fixed time, as people read it",
    ("connect/systems/address.py", "@"): "what stands behind the user in an address",
    ("engine/interest.py", "@"): "an attribute of XML, which is no child of a term",
    ("spark/read/csv_columns.py", "$"): "the end of a regular expression",
    ("spark/read/json_columns.py", "$"): "the end of a regular expression",
}


def _marks(tree: ast.AST) -> Iterator[str]:
    """What a module asks texts for, or puts before or after others, that looks like a mark of attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr), args=[first, *_]) if attr in TAKES_APART:
                texts = first.elts if isinstance(first, ast.Tuple) else [first]
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()]):
                texts = [left]
            case ast.Compare(left=ast.Subscript(), ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                texts = [right]
            case ast.JoinedStr(values=[first, *_] as values):
                texts = [first] + [values[-1]] * (len(values) > 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                texts = [left, right]
            case _:
                continue
        quotes = isinstance(node, ast.JoinedStr | ast.BinOp)  # in texts for people, names stand in backquotes
        marks = [t.value for t in texts if isinstance(t, ast.Constant) and t.value in MARKS]
        yield from (mark for mark in marks if not (quotes and mark == "`"))


@pytest.mark.parametrize(
    "package", ["algebra", "analysis", "rewrite", "physical", "kernels", "formats", "engine", "connect", "spark"]
)
def test_nobody_else_takes_a_name_apart(package: str) -> None:
    found = [
        (str(path.relative_to(SOURCE)), mark)
        for path in sorted((SOURCE / package).rglob("*.py"))
        if path.name != "attributes.py"
        for mark in _marks(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert [one for one in found if one not in OTHER_NAMES] == []
