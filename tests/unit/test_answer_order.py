"""Answers are sorted and written by columns exactly as they are one by one."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

import ephemera
from ephemera.formats.answer_order import AnswerPart, in_order
from ephemera.formats.encode_json import encode_lines, iso_texts
from ephemera.formats.json_events import write_event
from ephemera.kernels.columns import ints
from ephemera.kernels.event_columns import distinct, of_events
from ephemera.terms.events import Event, Interval
from ephemera.terms.text import iso
from ephemera.terms.values import Term, Time, Value

_CATALOGUE = ephemera.compile(
    "TIME UNIT 1 ms; EVENT told(b: any, a: any); r(x) <- i: told(x, _);"
)._compiled.rules.resolved.catalogue

_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, -0.5, 2.0]),
    st.sampled_from(["", "a", "ä", "\U0001f600", "\uffff", 'q"\\', "\n"]),
    st.integers(0, 3).map(Time),
)
_plain = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, 2.0]), st.sampled_from(["a", "ä", "\U0001f600", "\uffff"]))


def _event(label: str, values: list[Value], begin: int, length: int) -> Event:
    if label == "told":
        term = Term(
            label, tuple(Term(n, (v,)) for n, v in zip("ba", values, strict=False) if v is not None), ordered=False
        )
        return Event(term, Interval(begin, begin + length), positional=True)
    return Event(Term(label, tuple(values)), Interval(begin, begin + length), positional=True)


def _events(values: st.SearchStrategy[Value]) -> st.SearchStrategy[list[Event]]:
    one = st.builds(
        _event,
        st.sampled_from(["told", "p", "é"]),
        st.lists(values, min_size=2, max_size=2),
        st.sampled_from([0, 1, 1000, 1_500_000, 86_400_000_000, -1, 10**18]),
        st.sampled_from([0, 1, 2_000]),
    )
    return st.lists(one, max_size=30)


@given(st.one_of(_events(_values), _events(_plain)), st.booleans())
def test_lines_by_columns_are_those_of_sorted_events(events: list[Event], as_numbers: bool) -> None:
    parts = [AnswerPart(part) for part in distinct(of_events(events, _CATALOGUE.attributes))]
    every = [event for part in parts for event in part.events.events()]
    expected = [
        json.dumps(write_event(event, _CATALOGUE, as_numbers=as_numbers), ensure_ascii=False)
        for event in sorted(every, key=lambda one: one.key)
    ]
    written = encode_lines(parts, [_CATALOGUE], as_numbers=[as_numbers]).decode()
    assert written.split("\n")[:-1] == expected if expected else not written


@given(_events(_values), _events(_plain))
def test_equal_answers_stand_in_the_order_of_programs_and_events_before_messages(
    some: list[Event], others: list[Event]
) -> None:
    parts = [
        AnswerPart(part, message, program)
        for program, events in enumerate((some, others))
        for message in (None, ("a", "b"), ("a", "c"))
        for part in distinct(of_events(events, _CATALOGUE.attributes))
    ]
    every = [(event.key, part.rank) for part in parts for event in part.events.events()]
    assert [every[row] for row in in_order(parts).tolist()] == sorted(every)


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 10**6).map(lambda n: n * 1_000_000), max_size=8))
def test_times_by_columns_are_those_one_by_one(stamps: list[int]) -> None:
    assert iso_texts(ints(stamps).values).to_pylist() == [iso(Time(stamp)) for stamp in stamps]
