"""This module makes rules that join on different keys: chains, stars and windows, with a stream that is aimed at them.

Values are few, so that events meet by chance; some are null, some numbers come in both forms, and some events last.
"""

from __future__ import annotations

from random import Random
from typing import Any

KEYS = ("x", "y", "z")
DECLARED = "EVENT a(k: any, l: any) LASTS ANY; EVENT b(k: any, l: any); EVENT c(k: any, l: any) LASTS AT MOST 2;"
SHAPES: tuple[tuple[tuple[str, str], ...], ...] = (
    (("x", "y"), ("y", "z"), ("z", "u")),
    (("x", "y"), ("y", "z"), ("z", "u"), ("u", "t")),
    (("x", "_"), ("x", "y"), ("y", "_")),
    (("x", "y"), ("z", "y"), ("z", "u")),
    (("x", "y"), ("x", "z"), ("z", "_")),
    (("x", "y"), ("y", "x"), ("u", "t")),
    (("x", "x"), ("x", "y"), ("y", "z")),
    (("x", "y"), ("y", "z")),
)
"""The arguments of the events of a rule: what they share differs from pair to pair."""
PAIRS = ("{i} before {j}", "{{{i}, {j}}} within 3", "{i} before[0, 4] {j}", "{i} during {j}", "{i} overlaps {j}")


def program(dice: Random) -> str:
    """One or two rules over different keys; the second builds on the first."""
    text = f"{DECLARED}\n{rule(dice, 'p', ('a', 'b', 'c'))}"
    if dice.random() < 0.4:
        text += f"\n{rule(dice, 'q', ('a', 'p', 'c'))}"
    return text


def rule(dice: Random, head: str, labels: tuple[str, ...]) -> str:
    """A rule over some types, of two to four events."""
    shape = dice.choice(SHAPES)
    names = [f"e{k}" for k in range(len(shape))]
    body = [
        f"{name}: {dice.choice(labels)}({first}, {second})" for name, (first, second) in zip(names, shape, strict=True)
    ]
    dice.shuffle(body)
    bound = sorted({v for pair in shape for v in pair} - {"_"})
    body += [f"{{{', '.join(names)}}} within {dice.randint(2, 6)}"]
    for _ in range(dice.randint(0, 2)):
        i, j = dice.sample(names, 2)
        body.append(dice.choice(PAIRS).format(i=i, j=j))
    if dice.random() < 0.4:
        v, w = dice.sample(bound, 2)
        body.append(f"{v} {dice.choice(('<', '!=', '<='))} {w}")
    if dice.random() < 0.4:
        v, w = dice.sample(bound, 2)
        body.append(dice.choice((f"{v} + 1 > {w}", f"{v} * 4611686018427387904 != {w}", f"{v} = {w} - 1")))
    if dice.random() < 0.3:
        body.append(f"begin({names[0]}) <= end({names[-1]})")
    if dice.random() < 0.5:
        timer = dice.choice(("extend", "shift-forward", "from-end", "from-start-backward"))
        body.append(f"w: {timer}({dice.choice(names)}, {dice.randint(1, 3)})")
        if dice.random() < 0.7:
            inner = f"{dice.choice(labels)}({dice.choice(bound)}, {dice.choice((*bound, '_'))})"
            body.append(f"while w: {dice.choice(('not', 'collect'))} {inner}")
    shown = dice.sample(bound, 2)
    last = dice.choice((shown[1], shown[1], f"{shown[1]} + 1"))
    return f"{head}({shown[0]}, {last}) <- {', '.join(body)};"


def stream(dice: Random, size: int) -> list[dict[str, Any]]:
    """Events of few values, close together."""
    lengths = {"a": (0, 1, 3), "b": (0,), "c": (0, 1, 2)}
    events: list[dict[str, Any]] = []
    for _ in range(size):
        label = dice.choice("abc")
        begin = dice.randint(0, 12)
        time = [begin, begin + dice.choice(lengths[label])]
        data = [dice.choice((1, 1, 2, 2, 3, 1.0, None, "1")), dice.choice((1, 2, 2, 3, 2.0, None))]
        events.append({"event": label, "time": time, "data": data})
    return events
