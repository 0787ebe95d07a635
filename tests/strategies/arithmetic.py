"""This module generates programs that compute with several events, in conditions and heads, and hostile numbers.

Conditions are of every shape that a search may use as a key, and of shapes that only look like one. Numbers stand close
together, so that equations have answers, also at the limits of 64 bits and of what doubles hold.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

EQUATIONS = [
    *("v + w = 9", "w = 9 - v", "v = w + 1", "v = 2 * w", "v - w = 1", "9 = v + w", "w - v = -1", "v = w", "-v = w"),
    *("v + w = 9.0", "v = w + 1.0", "2 * v = w + w", "v + 2 * w = 12", "v - 1 = w + 1", "v + w + u = 9", "v + u = w"),
    *("v mod 3 = w mod 3", "v / 2 = w", "v = w / 2", "v div w = 1", "v * w = 12", "v + w = u", "v + i = w + j"),
    *(
        "add(v, w) = 9",
        "subtract(v, w) = 1",
        "v = mult(2, w)",
        "v + v = w + w",
        "v + (w - u) = 3",
        "concat(v) = concat(w)",
    ),
    *("abs(v) = w", "floor(v) + w = 9", "round(v) = w", "text(v) = text(w)", "greatest(v, u) = w", "power(v, 2) = w"),
    *("v in (w, 3)", "coalesce(v, 4) = w", "length(text(v)) = w"),
    *("begin(a) + w = begin(b) + v", "begin(b) - begin(a) = w", "duration(a) = w", "v + w = 9007199254740993"),
    *("v + w = 9223372036854775807", "w = -9223372036854775807 - v", "v + w = 0.0", "v + 1.5 = w"),
]
OTHERS = [
    *(
        "v > w + 1",
        "v + w >= 9",
        "not v + w > 9",
        "v * w < 20",
        "v / w > 1",
        "not v / w > 1",
        "v mod w = 1",
        "v != w + 1",
    ),
    *("v + 1 is null", "not v + w is null", "v + w is not null", "v = w + 1 or v + w = 9", "not (v = w + 1)"),
    *("v not in (w, 3, 4.0)", "round(v / w) > 1", "not least(v, w) < 3", "sqrt(v) < w", "ceil(v) in (1, w)"),
    *("v < w or w / v > 1", "-v > w", "v - w > -2 and v - w < 2", "end(b) - begin(a) > v"),
]
HEADS = [
    "i, j",
    "i, j, v + w",
    "i, j, v * w - 1",
    "v / w, i",
    "v mod w, j",
    "v - w, v",
    "i, j, -v, end(b) - begin(a)",
    "concat(v), w",
    "text(v), coalesce(w, 0), round(v), floor(w), abs(v)",
    "greatest(v, w), power(v, 2), sqrt(w)",
]
WINDOWS = [
    "Q{}(v, count(*), sum(w)) <- a: c(i, v), t: extend(a, 6), while t: collect d(j, w) where {{ {} }};\n",
    "Q{}(v, sum(w + 1), max(w * 2), v + 1) <- a: c(i, v), t: extend(a, 6), while t: collect d(j, w) where {{ {} }};\n",
    "Q{}(v, avg(w - 1)) <- a: c(i, v), t: extend(a, 6), while t: collect optional d(j, w) where {{ {} }};\n",
    "Q{}(v) <- a: c(i, v), t: extend(a, 6), while t: not d(j, w) where {{ {} }};\n",
]
IN_WINDOWS = ["w > v", "w > v + 1", "v + w = 9", "w = v + 1", "w - v > -2 and w - v < 2", "w / v > 1", "not w > v"]
PAIRS = "Q{}({}) <- a: c(i, v), b: d(j, w), {{a,b}} within 9, {};\n"
TRIPLES = [
    "Q{}({}) <- a: c(i, v), b: d(j, w), f: e(k, u), {{a,b,f}} within 9, {};\n",
    "Q{}({}) <- a: c(i, v), b: d(j, w), f: e(u, w), {{a,b,f}} within 9, {};\n",
    "Q{}({}) <- a: c(i, v), b: d(j, w), f: e(v, u), {{a,b,f}} within 9, {};\n",
]
SMALL = (1, 2, 3, 4, 5, 6, 7, 8)
STREAMS: dict[str, tuple[Any, ...]] = {
    "small": SMALL,
    "mixed": (*SMALL, 1.0, 2.0, 4.5, 8.0, 0, -0.0),
    "odd": (*SMALL[:4], 1.0, 0, None, "1", "x", True),
    "large": (2**53, 2**53 - 1, 2**53 + 1, float(2**53), 1, 1.0, 0, 2**53 - 8),
    "limits": (2**63 - 1, -(2**63), 2**62, -(2**62), 2.0**63, 2.0**62, 1, -1, 0, 1e308, -1e308),
}
WRITTEN = 'FUNCTION gcd(int, int): int FROM "math:gcd";\n'
"""A function that people wrote."""
DECLARED = "EVENT c(i: int, v: int);\nEVENT d(j: int, w: int);\nEVENT e(k: int, u: int);\n"


@st.composite
def _programs(draw: DrawFn) -> tuple[str, str, bool]:
    is_declared = draw(st.booleans())
    stream = draw(st.sampled_from(["small", "limits"] if is_declared else list(STREAMS)))
    text = WRITTEN + (DECLARED if is_declared else "")
    for number in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from(["pair", "pair", "triple", "window"]))
        if shape == "window":
            text += draw(st.sampled_from(WINDOWS)).format(number, draw(st.sampled_from(IN_WINDOWS)))
            continue
        body = PAIRS if shape == "pair" else draw(st.sampled_from(TRIPLES))
        allowed = [c for c in EQUATIONS if "u" not in c.replace("mult", "").replace("sub", "").replace("dur", "")]
        first = draw(st.sampled_from(EQUATIONS if shape == "triple" else allowed))
        conditions = [
            first,
            *draw(st.lists(st.sampled_from([*OTHERS, "gcd(v, w) > 1", "not gcd(w, v) > 1"]), max_size=1)),
        ]
        text += body.format(number, draw(st.sampled_from(HEADS)), ", ".join(conditions))
    return text, stream, is_declared


def programs() -> SearchStrategy[tuple[str, str, bool]]:
    """Programs of one to three such rules, what their numbers are like, and whether these are declared to be whole."""
    return _programs()


def stream(seed: int, numbers: str, *, is_declared: bool) -> list[dict[str, Any]]:
    """Events of three types within a few seconds, some of them of an equal time."""
    dice = Random(seed)
    values = [v for v in STREAMS[numbers] if not is_declared or type(v) is int]
    return [
        {"event": "cde"[k % 3], "time": dice.randrange(12), "data": [dice.choice(values), dice.choice(values)]}
        for k in range(dice.randrange(6, 30))
    ]
