"""This module generates programs whose timers are as long as events and tables say, with events around their ends.

Lengths are whole and broken numbers, negative, too many, and no numbers at all; they are computed, and stand on timers.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from .timers import TIMERS

DECLARED = """
EVENT a(k: int, h: any);
EVENT b(k: int);
EVENT c(k: int) LASTS AT MOST 4;
TABLE often(k: int, m: float);
"""
LENGTHS = ["h", "h + 1", "2 * h", "h / 2", "4 - h", "duration(o) + h"]
RULES = [
    "n1(k) <- o: a(k, h), w: KIND(o, LENGTH AT MOST 5), while w: not b(k);",
    "n2(k, count(*)) <- o: a(k, h), w: KIND(o, LENGTH AT MOST 5), while w: collect optional c(_);",
    "n3(k, h) <- o: a(k, h), e: c(k), {o, e} within 6, w: KIND(e, LENGTH AT MOST 3), while w: not b(_);",
    "n4(k) <- o: a(k, h), w: KIND(o, LENGTH AT MOST 4), e: b(k), {w, e} within 8, w before e;",
    "n5(k, m) <- o: c(k), often(k, m), w: KIND(o, m + 1 AT MOST 4), while w: not b(k);",
    "n6(k) <- o: a(k, h), w: KIND(o, LENGTH AT MOST 5), u: shift-forward(w, duration(w) AT MOST 3), while u: not b(k);",
    "n7(k, end(w)) <- o: a(k, h), w: KIND(o, LENGTH AT MOST 5), e: b(_), e during w;",
    "n8(k) <- o: a(k, h), i: b(k), {o, i} within 3, w: KIND(i, LENGTH AT MOST 5), while(excl,incl) w: not c(k);",
]


@st.composite
def _told(draw: DrawFn) -> tuple[str, list[dict[str, object]], dict[str, list[dict[str, object]]]]:
    unit = draw(st.sampled_from(["", "TIME UNIT 1 min;\n"]))
    rules = draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=3, unique=True))
    texts = [
        rule.replace("KIND", draw(st.sampled_from(TIMERS))).replace("LENGTH", draw(st.sampled_from(LENGTHS)))
        for rule in rules
    ]
    lengths = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 0.5, 1.25, -1, "2", None, True])
    events: list[dict[str, object]] = []
    for _ in range(draw(st.integers(1, 12))):
        label = draw(st.sampled_from("aaabbcc"))
        begin, k = draw(st.integers(0, 12)), draw(st.integers(1, 2))
        end = begin + (draw(st.integers(0, 4)) if label == "c" else 0)
        events.append({"event": label, "time": [begin, end], "data": [k, draw(lengths)] if label == "a" else [k]})
    rows = draw(st.lists(st.sampled_from([(1, 0.0), (1, 2.5), (2, 1.0), (2, 9.0), (2, -3.0)]), max_size=3, unique=True))
    return unit + DECLARED + "\n".join(texts), events, {"often": [{"k": k, "m": m} for k, m in rows]}


def told() -> SearchStrategy[tuple[str, list[dict[str, object]], dict[str, list[dict[str, object]]]]]:
    """A program, events, and the rows of its table."""
    return _told()
