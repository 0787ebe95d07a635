"""This module generates programs whose windows and selections have conditions on time of their own."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

NAMES = "before after meets met-by overlaps overlapped-by starts started-by during contains finishes finished-by equals"
METRIC = """before[1] before[0,2] before[*,2] before[1,*] after[2] after[0,2] meets[1] met-by[2]
overlaps[1,1] overlaps[0,2,0,3] overlapped-by[0,3,0,3] starts[1] starts[0,2] starts[1,0,3] started-by[0,3] during[1]
during[1,2] during[0,2,0,3] contains[0,1,0,2] finishes[1] finishes[0,2] finishes[1,0,3] finished-by[0,3] equals[1]
equals[1,2]"""
RELATIONS = [f"p {name} OTHER" for name in (*NAMES.split(), *METRIC.split())]
OTHERS = [
    "{p, OTHER} within 3",
    "{p, OTHER} apart-by 2",
    "{p} within 1",
    'p before datetime("1970-01-01T00:00:07Z")',
    'p after datetime("1970-01-01T00:00:05Z")',
    "not (p after[0, 2] OTHER)",
    "p before[0, 4] OTHER and u > 1",
    "p before OTHER or p after[1, 2] OTHER",
    "OTHER before[0, 1] p",
    'OTHER after[0, 3] p and p after datetime("1970-01-01T00:00:03Z")',
]
CONDITIONS = [*RELATIONS, *OTHERS]
WINDOWS = {
    "while": ("w: extend(o, 4), while w:", ("o", "w")),
    "while(incl,excl)": ("w: from-end-backward(o, 5), while(incl,excl) w:", ("w", "o")),
    "while(excl,incl)": ("w: shift-forward(o, 2), while(excl,incl) w:", ("o", "w")),
    "while(excl,excl)": ("w: extend(o, 5), while(excl,excl) w:", ("w", "o")),
    "from until": ("c: c(j), {o, c} within 9, from o until c:", ("o", "c")),
}

HEADS = [
    "Q{}(i, count(*), sum(u), max(u)) <- o: o(i), {} {} p: p({}, u) where {{ {} }};\n",
    "Q{}(i, count(u)) <- o: o(i), {} {} p: p({}, u) where {{ {} }};\n",
    "Q{}(i, first(u), nth(u, 2), list(u), max(end(p))) <- o: o(i), {} {} p: p({}, u) where {{ {} }};\n",
    "Q{}(i, last(u), top(u, 2 by 0 - u), min(begin(p))) <- o: o(i), {} {} p: p({}, u) where {{ {} }};\n",
    "Q{}(i) <- o: o(i), {} {} p: p({}, u) where {{ {} }};\n",
]
SELECTIONS = [
    "next p({}, u) after o within 6",
    "last p({}, u) before o within 6",
    "first p({}, u) in {}",
    "last p({}, u) in {}",
    "next p({}, u) after o within 6 without {{ c, o(_) }}",
]


@st.composite
def _programs(draw: DrawFn) -> tuple[str, bool]:
    lasting = draw(st.booleans())
    text = f"EVENT p(k: int, v: int){' LASTS AT MOST 3' if lasting else ''};\n"
    text += "EVENT o(i: int) LASTS AT MOST 3;\nEVENT c(j: int) LASTS AT MOST 3;\n"
    for number in range(draw(st.integers(1, 3))):
        body, others = WINDOWS[draw(st.sampled_from(list(WINDOWS)))]
        parts = [_condition(draw, others) for _ in range(draw(st.integers(1, 2)))]
        own = draw(st.sampled_from([" and ", " or "])).join(parts)
        if draw(st.integers(0, 3)) == 0:
            chosen = draw(st.sampled_from(SELECTIONS)).format(draw(st.sampled_from(["_", "i"])), others[0])
            before = body.rpartition(", ")[0]
            text += f"Q{number}(i, u) <- o: o(i), {before}, p: {chosen} where {{ {own} }};\n"
            continue
        head = draw(st.sampled_from(HEADS))
        mode = "not" if head is HEADS[-1] else draw(st.sampled_from(["collect", "collect optional"]))
        text += head.format(number, body, mode, draw(st.sampled_from(["_", "i"])), own)
    return text, lasting


def _condition(draw: DrawFn, others: tuple[str, str]) -> str:
    found = draw(st.sampled_from(CONDITIONS)).replace("OTHER", draw(st.sampled_from(others)))
    return f"(not ({found}))" if draw(st.integers(0, 4)) == 0 else f"({found})"


def programs() -> SearchStrategy[tuple[str, bool]]:
    """Programs of one to three such rules, and whether what lies in their windows may last."""
    return _programs()
