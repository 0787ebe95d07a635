"""This module shows that answers reach people and functions with keys that always are the same."""

from __future__ import annotations

import io
import random
from collections.abc import Mapping, Sequence
from typing import Any

import ephemera
from ephemera.engine.cluster.message import Answers, EventsFor, Shipment
from ephemera.formats.answer_keys import RulePrints, key_of
from ephemera.formats.json_events import read_object
from ephemera.kernels.event_columns import of_events
from ephemera.spark.sinks.callback_sink import Answer, Console, Delivery, EachAnswer, EachBatch
from ephemera.spark.sinks.encode_answers import forms_of
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Value
from tests.spark.test_sinks import LARGE, LATES, LETTERS, SENDING, SHOP, given, spread_of


def delivered(text: str, told: Sequence[Shipment], *names: Mapping[str, str]) -> list[Answer]:
    """What a function is called with."""
    found: list[Answer] = []
    spread = spread_of(text)
    delivery = Delivery(forms_of([spread], names), {0: RulePrints(spread.plan)}, EachAnswer(found.append))
    assert delivery.deliver(4, told) == len(found)
    return found


def test_a_function_gets_each_answer_in_order_with_a_key() -> None:
    spread = spread_of(SHOP)
    found = delivered(SHOP, [*given(spread, LARGE + LATES[::-1]), *LETTERS])
    assert [{k: v for k, v in a.items() if k != "key"} for a in found] == [*LATES[:3], LARGE[0], LATES[3]]
    assert len({a["key"] for a in found}) == len(found)


def test_a_function_of_batches_is_called_once_for_a_batch_that_has_answers() -> None:
    spread, calls = spread_of(SHOP), list[tuple[list[Answer], int]]()
    sink = EachBatch(lambda answers, batch: calls.append((answers, batch)))
    delivery = Delivery(forms_of([spread]), {0: RulePrints(spread.plan)}, sink)
    assert delivery.deliver(4, LETTERS) == 0
    assert delivery.deliver(5, given(spread, LATES)) == 4
    assert [(len(answers), batch) for answers, batch in calls] == [(4, 5)]


def test_messages_have_the_keys_of_where_they_go() -> None:
    spread = spread_of(SENDING)
    (answer,) = delivered(SENDING, given(spread, [{"event": "letter", "time": 1, "data": ["a"]}], rule=1))
    (other,) = delivered(SENDING, given(spread, [{"event": "letter", "time": 1, "data": ["a"]}]))
    assert (answer["recipient"], answer["transport"]) == ("desk", "mail")
    assert answer["key"] != other["key"]


# ---- keys ----------------------------------------------------------------------------------------------------


def event(*values: Value, label: str = "a", begin: int = 0, end: int = 0, ordered: bool = True) -> Event:
    return Event(Term(label, values, ordered), Interval(begin, end))


def key(one: Event) -> str:
    return key_of(["rule"], None, one)


def test_a_key_is_the_same_in_every_version_of_python_and_on_every_machine() -> None:
    assert key(event(1, "b", None, True, 2.5)) == "8bcfb14b3a21875fb80027e465fc3008"


def test_equal_events_have_equal_keys() -> None:
    assert key(event(1, 0.0, 2**60)) == key(event(1.0, -0.0, float(2**60)))
    assert key(event(1, 2, ordered=False)) == key(event(2, 1, ordered=False))


def test_unequal_events_have_unequal_keys() -> None:
    unlike = [
        event(),
        event(1),
        event(1.5),
        event("1"),
        event(True),
        event(None),
        event("a", "b"),
        event("ab"),
        event("a", "b", ordered=False),
        event(Term("a", ())),
        event(label="b"),
        event(end=1),
        event(begin=1, end=1),
        event(2**53),
        event(2**53 + 1),
    ]
    keys = [key(e) for e in unlike]
    assert len(set(keys)) == len(keys)
    assert len({key_of([p], to, event()) for p in ("p", "q") for to in (None, ("p", "q"), ("q", "p"))}) == 6


def test_a_deep_term_has_a_key() -> None:
    deep: Value = 1
    for _ in range(5_000):
        deep = Term("a", (deep,))
    assert len(key(event(deep))) == 32


def test_keys_do_not_depend_on_the_number_of_shards_or_on_arrival() -> None:
    events = [{"event": "order", "time": k // 2, "data": [f"i{k % 7}", k]} for k in range(40)]
    seen = {frozenset(a["key"] for a in delivered(SHOP, run_in(places, events))) for places in (1, 2, 5)}
    random.Random(1).shuffle(events)
    seen.add(frozenset(a["key"] for a in delivered(SHOP, run_in(3, events))))
    (keys,) = seen
    assert len(keys) > 40


def run_in(places: int, events: Sequence[Mapping[str, Any]]) -> list[Shipment]:
    """What a program ships in so many places."""
    spread = spread_of(SHOP, places=places)
    catalogue = spread.compiled.rules.resolved.catalogue
    parts = of_events(
        [e for e in (read_object(o, catalogue) for o in events) if isinstance(e, Event)], catalogue.attributes
    )
    routed = [s for s in spread.route(parts) if isinstance(s, EventsFor)]
    routed.sort(key=lambda s: s.events.first)
    told: list[Shipment] = []
    for number in range(len(spread.stages.groups)):
        for place in range(places):
            own = [s for s in routed if (s.group, s.place) == (number, place)]
            told += spread.run(number, place, place, own)
    return [s for s in told if isinstance(s, Answers)]


MORE = """
TIME UNIT 1 sec;
large(i) <- o: order(i, n), n > 5;
large(i) <- p: paid(i);
small(i) <- o: order(i, n), n < 3;
"""


def test_a_key_is_of_the_rules_that_derive_the_label_and_of_no_others() -> None:
    def of(text: str, label: str) -> tuple[str, ...]:
        return RulePrints(ephemera.compile(text)._compiled.physical).of(label, None)

    assert len(of(MORE, "large")) == 2
    lines = MORE.strip().splitlines()
    backwards = "\n".join([lines[0], *reversed(lines[1:])]).replace("n)", "count)").replace("n >", "count >")
    backwards = backwards.replace("n <", "count <")
    assert of(MORE, "large") == of(backwards, "large") == of(MORE.replace("n < 3", "n < 4"), "large")
    assert of(MORE, "small") != of(MORE.replace("n < 3", "n < 4"), "small")
    assert of(MORE, "large") != of(MORE.replace("n > 5", "n > 6"), "large")


def test_a_key_of_a_message_is_of_the_rules_that_send_it_there() -> None:
    rule = 'RAISE to(recipient="{}", transport="mail") {{ letter [ var I ] }} ON order {{{{ id {{ var I }} }}}} END\n'
    rules = RulePrints(ephemera.compile(rule.format("desk") + rule.format("shop"))._compiled.physical)
    desk, shop = (rules.of("letter", (to, "mail")) for to in ("desk", "shop"))
    assert len(desk) == len(shop) == 1
    assert desk != shop
    assert rules.of("letter", None) == ()


# ---- the console ---------------------------------------------------------------------------------------------


def test_the_console_shows_the_first_answers_and_counts_the_rest() -> None:
    out = io.StringIO()
    answers: list[Answer] = [{"event": "late", "time": [k, k + 5], "data": [f"ä{k}", k], "key": ""} for k in range(4)]
    answers.insert(1, {"event": "letter", "time": 1, "term": "letter[1]", "recipient": "desk", "key": ""})
    Console(out, shown=3, width=40)(answers, 12)
    Console(out)(answers[:1], 13)
    assert out.getvalue().splitlines() == [
        "batch 12: 5 answers",
        '  0 … 5  late    ["ä0", 0]',
        "  1      letter  letter[1]  to desk",
        '  1 … 6  late    ["ä1", 1]',
        "  … and 2 more",
        "batch 13: 1 answer",
        '  0 … 5  late  ["ä0", 0]',
    ]


def test_the_console_obeys_no_answer() -> None:
    out = io.StringIO()
    Console(out, width=40)([{"event": "\x1b[2J", "time": 1, "data": ["\x9b2J" + "x" * 100], "key": ""}], 1)
    shown = out.getvalue().splitlines()[1]
    assert shown.startswith('  1  \\x1b[2J  ["\\x9b2J')
    assert shown.isprintable()
    assert len(shown) == 40
