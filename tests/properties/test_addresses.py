"""Messages with computed recipients are the same on every engine, in whatever parts events come."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import ephemera
from ephemera.engine.hosts.batch import written_messages
from ephemera.formats.json_events import read_object
from ephemera.rules.outcome import World
from ephemera.semantics.oracle import evaluate
from ephemera.terms.events import Event
from tests.engine.spreading import run_spread

PROGRAMS = [
    ephemera.compile(f"EVENT a(x: int, d: any); EVENT b(x: int, t: any);\n{rules}")
    for rules in (
        """
RAISE to(recipient=var D, transport="console") { m { x { var X } } } ON event i: a(var X, var D) END
RAISE to(recipient="north", transport="console") { m { x { var X } } } ON event i: b(var X, var T) END
""",
        """
RAISE to(recipient=var D, transport=var T) { m { all x { var X } group by [var X] } }
ON and { event i: a(var X, var D), event j: b(var X, var T) } where { {i, j} within 4 }
END
""",
        """
RAISE to(recipient=var X + var Y, transport="console") { m { } }
ON and { event i: a(var X, var D), event j: b(var Y, var T) } where { {i, j} within 2 }
END
RAISE to(recipient="3", transport="console") { m { } } ON event i: a(3, var D) END
""",
    )
]
PLACES = st.sampled_from(["north", "south", "", None, 3, 2.5, True])
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "event": st.sampled_from(["a", "b"]),
            "time": st.integers(0, 12),
            "data": st.tuples(st.integers(0, 3), PLACES).map(list),
        }
    ),
    max_size=14,
)


def told(messages: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, messages))


@settings(max_examples=25)
@given(st.sampled_from(PROGRAMS), EVENTS, st.integers(1, 4))
def test_computed_recipients_are_the_same_everywhere(
    program: ephemera.Program, events: list[dict[str, Any]], places: int
) -> None:
    rules, catalogue = program._rules, program.catalogue
    meant = evaluate(rules, [e for one in events if isinstance(e := read_object(one, catalogue), Event)])
    wanted = told(written_messages(meant, program._compiled, as_numbers=True))
    assert told(program.run_all(events).messages) == wanted
    engine = program.engine()
    live = [engine.send(one) for one in sorted(events, key=lambda one: one["time"])] + [engine.finish()]
    assert told([one for part in live for one in part]) == wanted
    read = [e for one in events if isinstance(e := read_object(one, catalogue), Event)]
    spread, _ = run_spread(program._compiled, read, World(), places)
    assert told(written_messages(spread, program._compiled, as_numbers=True)) == wanted
    assert {one.reason for one in spread.dead_letters} == {one.reason for one in meant.dead_letters}
