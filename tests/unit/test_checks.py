"""This module shows what checks let pass, what they tell only once, and how much they look at."""

from __future__ import annotations

import pytest

from ephemera.base.diagnostic import Diagnostic
from ephemera.base.span import Source
from ephemera.pipeline import check
from ephemera.rules.findings import MOST_GUESSING, MOST_LISTED, Findings, closest, listed
from ephemera.syntax.lexer import MOST_DIAGNOSTICS, tokenize


def told(program: str) -> list[Diagnostic]:
    return list(check(Source("program.eq", program)).report.diagnostics)


def codes(program: str) -> list[str]:
    return [str(d.code) for d in told(program)]


@pytest.mark.parametrize(
    "program",
    [
        "p(x) <- e: a(x), {e} in workday();",
        "p(x) <- e: a(x), f: b(x), {e, f} in cal:workday();",
        "EVENT a(x: int) RATE 1e3 per sec; p(x) <- e: a(x);",
        "EVENT a(x: int) RATE 2.5E-3 per min; p(x) <- e: a(x);",
        "EVENT a(x: int) RATE 0e999 per sec; p(x) <- e: a(x);",
        'r(begin(e), end(e), duration(e)) <- e: a(x), e after datetime("2026-01-01");',
        "DETECT var X ON event e: a {{ var X }} END",
        "DETECT all b { var X } ON event e: a {{ var X }} END",
        "DETECT optional b { var X } with default b { 0 } ON event e: a {{ optional var X }} END",
        "EVENT a(x: int, y: int); DETECT a { x { var X } } ON event e: b {{ var X }} END EVENT b;",
        "EVENT a(x: int, y: int); EVENT b; DETECT a { var L { var X } } ON event e: b {{ var L { var X } }} END",
        "EVENT a(x: int, y: int); r(x) <- e: a { x { var x } };",
        "p() <- e: timer:datetime(zone-offset: 5.5, minute: 0);",
        "p() <- e: timer:datetime(day-of-month: 5.0);",
        "p(x) <- e: a(x), f: b(x), e before[0] f, f before[0, 2h] e;",
        "p(x) <- e: a(x), f: b(x), e before[1h, 2h] f, f after[1h, 2h] e;",
        "p(x) <- e: a(x), f: b(x), (e before f or f before e);",
        "EVENT a(x: int); EVENT b(x: int) LASTS ANY; p(x) <- or { e: a(x), e: b(x) }, w: shorten(e, 2h);",
        "EVENT a; EVENT b LASTS ANY; p(x) <- or { and { e: b(x), w: shorten(e, 2h) }, e: a(x) };",
        "DETECT where { where { var X } } ON event e: having {{ where { var X }, ON {{ }} }} END",
    ],
)
def test_what_may_be_written_passes(program: str) -> None:
    assert codes(program) == []


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ('r(begin("abc")) <- e: a(x);', ["type-clash"]),
        ("r(end(1)) <- e: a(x);", ["type-clash"]),
        ("r(duration(2 + 3)) <- e: a(x);", ["type-clash"]),
        ("r(datetime(5)) <- e: a(x);", ["type-clash"]),
        ("r(datetime(x)) <- e: a(x);", ["type-clash"]),
        ("p(x) <- e: a(x), e before datetime(x);", ["syntax"]),
        ("p(x) <- e: a(x), datetime(x) before e;", ["type-clash"]),
        ("r(begin(var x)) <- e: a(x);", ["unknown-identifier"]),
        ("r(begin(var y)) <- e: a(x);", ["unbound-variable"]),
        ("DETECT concat(var X) ON event e: a {{ var X }} END", ["misplaced-term"]),
        ("DETECT all 5 ON event e: a {{ var X }} END", ["misplaced-term"]),
        ("DETECT optional b { } with default 5 ON event e: a {{ var X }} END", ["misplaced-term"]),
        (
            "EVENT a(x: int); EVENT b; DETECT all a { all y { var X } } ON event e: b {{ var X }} END",
            ["unknown-attribute"],
        ),
        ("p(x) <- while e: not a(k: x, k: x), e: b(x);", ["wrong-arity"]),
        ("TABLE t(k: int); p(x) <- e: b(x), t(k: x, k: x);", ["wrong-arity"]),
        ("p(x) <- e: algebra (a(k: x, k: x); b(x));", ["wrong-arity"]),
        (
            "p() <- e: timer:datetime {{ hour-of-day { 1 }, hour-of-day { 2 }, hour-of-day { 3 } }};",
            ["wrong-arity"] * 2,
        ),
        ("p(x) <- e: algebra (timer:datetime; a(x));", ["impossible-date"]),
        ("p(x) <- e: a(x), f: b(x), e before f, f before e;", ["contradictory-duration"]),
        ("p(x) <- e: a(x), f: b(x), e before[*, 2h] f, e after[0, 1h] f;", ["contradictory-duration"]),
        ("EVENT a(x: int); p(x) <- or { e: a(x), e: a(x) }, w: shorten(e, 2h);", ["contradictory-duration"]),
        ("EVENT a(x: int) RATE 1e-999999999999999999999 per sec;", ["bad-number"]),
    ],
)
def test_what_makes_no_sense_is_told_once(program: str, expected: list[str]) -> None:
    assert codes(program) == expected


def test_a_missing_comma_is_not_taken_for_a_unit() -> None:
    (found,) = told("p(x) <- e: a(x), f: b(x), {e, f} within 5 x > 3;")
    assert found.help[0].message == "write `,` between the two"


def test_a_table_that_an_event_is_known_as_is_told_in_a_broken_program() -> None:
    assert codes("TABLE t(k: string) FROM 5; EVENT a(x: any); p(x) <- e: a(x), not a(x);") == [
        "syntax",
        "misused-table",
    ]


def test_equal_declarations_keep_their_shape() -> None:
    program = "EVENT a(x: int); EVENT a(x: int); p(x) <- e: a(x, x);"
    assert codes(program) == ["duplicate-declaration", "wrong-arity"]


def test_a_word_that_is_none_is_one_mistake_however_long_it_is() -> None:
    assert [d.span.end - d.span.start for d in tokenize("1a" * 1000 + "_").diagnostics] == [2001]
    assert [d.span.end - d.span.start for d in tokenize("1.5a_").diagnostics] == [5]


def test_only_so_many_bad_words_and_brackets_are_kept() -> None:
    assert len(tokenize("$ " * 1000).diagnostics) == MOST_DIAGNOSTICS
    assert len(tokenize("} " * 1000).diagnostics) == MOST_DIAGNOSTICS
    assert len(tokenize("(]" * 1000).diagnostics) == MOST_DIAGNOSTICS


def test_a_close_name_is_found_among_many() -> None:
    names = [f"event-number-{k}" for k in range(1000)]
    assert closest("event-numbr-517", names) == "event-number-517"
    assert closest("EVENT-NUMBER-517", names) == "event-number-517"
    assert closest("something else", names) is None


def test_guessing_comes_to_an_end() -> None:
    names = [f"event-number-{k}" for k in range(1000)]
    findings, span = Findings(), told("p")[0].span
    helps = [findings.did_you_mean(f"event-numbr-{k}", names, span, "no", what="event") for k in range(1000)]
    guessed = [advice for advice in helps if advice.edits]
    assert 50 < len(guessed) <= MOST_GUESSING // len(names)
    assert helps[: len(guessed)] == guessed
    assert findings.did_you_mean("event-numbr-0", names, span, "no", what="event") == guessed[0]


def test_long_lists_are_cut() -> None:
    assert listed("abc") == "`a`, `b` and `c`"
    assert listed(str(k) for k in range(MOST_LISTED + 3)).endswith(f"`{MOST_LISTED - 1}` and 3 more")


def test_many_misspelt_events_are_all_told() -> None:
    number = 2000
    declared = "".join(f"EVENT event-number-{k}(x: int);" for k in range(number))
    rules = "".join(f"p{k}(x) <- e: event-numbr-{k}(x);" for k in range(number))
    found = told(declared + rules)
    assert len(found) == number
    assert found[0].help[0].message == "did you mean `event-number-0`?"
    assert all(d.help for d in found)


def test_a_rule_of_too_many_parts_is_refused_and_not_planned() -> None:
    events = ", ".join(f"e{k}: a(x)" for k in range(300))
    found = check(Source("program.eq", f"p(x) <- {events};")).report
    assert [str(d.code) for d in found.diagnostics] == ["too-many-parts"]
    assert "300 events, timers, windows and conditions" in found.diagnostics[0].message


def test_a_rule_of_many_parts_is_planned() -> None:
    events = ", ".join(f"e{k}: a(x)" for k in range(120))
    order = ", ".join(f"e{k} before[0, 1] e{k + 1}" for k in range(119))
    assert not check(
        Source("program.eq", f"EVENT a(x: int); p(x) <- {events}, {order};"), unbounded="error"
    ).report.failed
