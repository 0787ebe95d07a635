"""This module shows that events which are one are used in one form, `1` for `1.0`, whenever they meet in a step."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ephemera
from ephemera.kernels import event_columns
from ephemera.kernels.columns import Column, column

Rows = list[dict[str, Any]]


def event(label: str, *data: Any) -> dict[str, Any]:
    return {"event": label, "time": 1, "data": list(data)}


def answers(engine: str, text: str, rows: Rows) -> list[str]:
    program = ephemera.compile(text)
    if engine == "live":
        live = program.engine(allow_unbounded=True)
        found = [*(answer for row in rows for answer in live.send(row)), *live.finish()]
    else:
        found = program.run(rows, engine=engine, allow_unbounded=True)
    return sorted(f"{answer['event']}{answer['data']}" for answer in found)


ENGINES = pytest.mark.parametrize("engine", ["oracle", "local", "live"])


@ENGINES
def test_who_reads_an_event_of_two_rules_gets_the_form_of_both(engine: str) -> None:
    text = "p(x * 1.0) <- e: a(x); p(x) <- e: b(x); q(concat(x)) <- e: p(x);"
    assert answers(engine, text, [event("a", 1), event("b", 1)]) == ["p[1]", "q['1']"]


LINKS = "way(x, y) <- l: link(x, y); way(x, z) <- w: way(x, y), l: link(y, z);"


@ENGINES
def test_what_recursion_has_used_before_it_had_its_form_is_used_again(engine: str) -> None:
    """The way to 1.0 is there at first, and only then the one by 4 to 1, which is the same."""
    text = LINKS + "back(y, concat(y)) <- w: way(x, y), x = 3; way(y, x) <- b: back(y, _), l: link(_, x), x = 4;"
    rows = [event("link", 3, 1.0), event("link", 3, 4), event("link", 4, 1)]
    found = answers(engine, text, rows)
    assert "back[1, '1']" in found
    assert "way[1, 4]" in found
    assert not [one for one in found if "1.0" in one]


@ENGINES
def test_an_event_from_outside_has_the_form_that_recursion_gives_it(engine: str) -> None:
    text = LINKS + "way(x, concat(y)) <- w: way(x, y), y = 1;"
    rows = [event("way", 3, 1.0), event("link", 3, 4), event("link", 4, 1)]
    assert answers(engine, text, rows) == ["way[3, '1']", "way[3, 1]", "way[3, 4]", "way[4, '1']", "way[4, 1]"]


@pytest.mark.parametrize("seed", range(4))
def test_links_in_any_form_answer_what_the_oracle_answers(seed: int) -> None:
    dice = Random(seed)
    text = LINKS + "way(y, x) <- w: way(x, y), x < y; told(concat(x), y) <- w: way(x, y);"
    for _ in range(5):
        places = [dice.choice([k, float(k)]) for k in range(4)]
        rows = [event("link", *dice.choices([*places, 0, 1, 2], k=2)) for _ in range(5)]
        expected = answers("oracle", text, rows)
        assert answers("local", text, rows) == expected
        assert answers("live", text, rows) == expected


def test_many_events_that_meet_in_another_form_are_changed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(values: list[Any]) -> Column:
        made.append(len(values))
        return column(values)

    monkeypatch.setattr(event_columns, "column", counted)
    rows = [event("p", float(k)) for k in range(300)] + [event("a", k) for k in range(300)]
    assert len(answers("local", "p(x) <- e: a(x); q(x) <- e: p(x), x < 2;", rows)) == 302
    assert 300 in made
    assert len(made) < 10, "together, and not one by one"
