"""This module shows that the transformation of figure 5 changes nothing that is found, and bounds what is kept.

Expressions are detected as they are written, with nothing forgotten, and as they are transformed and shrunk. What is
picked is the same with all its parts, not only the same in time (corollary 1 and theorem 8 of the paper).
"""

from __future__ import annotations

from random import Random

import pytest

from ephemera.algebra.detector import Detector
from ephemera.algebra.explain import detected
from ephemera.algebra.nodes import Composition, Detected, Limit, Never, Primitive
from ephemera.algebra.transform import Time, contradictions, shrink, transform
from ephemera.base.tree import find
from ephemera.engine.operators.detect_rows import Instance, RowStep

B, P, T = Primitive(0), Primitive(1), Primitive(2)
NAMES = ("b", "p", "t", "b", "p", "t")
PRIMITIVES = 6
LABELS = 3
"""Primitives whose numbers leave the same rest are of the same events."""


def then(left: Detected, right: Detected) -> Composition:
    return Composition(";", left, right)


def _same(a: Detected, b: Detected) -> bool:
    match a, b:
        case Primitive(one), Primitive(other):
            return one % LABELS == other % LABELS
        case Limit(one, length), Limit(other, limit):
            return length == limit and _same(one, other)
        case Composition(sign, one, other), Composition(operator, left, right):
            return sign == operator and _same(one, left) and _same(other, right)
        case _:
            return False


def test_example_5_literally() -> None:
    written = Composition("-", Limit(then(B, Primitive(3)), 2), then(P, Composition("+", Primitive(4), T)))
    made, label = transform(written, [0] * 6)
    assert (detected(made, NAMES), label) == ("((b ;0 b)[2us] - (p ;2us (p + t)[2us]))", 2)


def test_example_2_needs_no_transformation_but_labels() -> None:
    written = Composition("-", Limit(then(B, Primitive(3)), 2), Composition("|", P, T))
    made, label = transform(written, [0] * 6)
    assert (detected(made, NAMES), label) == ("((b ;0 b)[2us] - (p | t))", 2)


def test_what_theorem_2_shrinks() -> None:
    again = Primitive(3)
    assert shrink(Composition("|", B, again), _same, _same) == B
    assert shrink(Limit(Limit(B, 5), 3), _same, _same) == Limit(B, 3)
    assert shrink(Composition("-", Composition("-", B, P), T), _same, _same) == Composition(
        "-", B, Composition("|", P, T)
    )
    both = Composition("|", P, Composition("+", Primitive(4), T))
    assert shrink(Composition("-", B, both), _same, _same) == Composition("-", B, P)


def test_what_needs_what_never_occurs_never_occurs() -> None:
    """A-A, and what is made of it; an alternative to it stays, and so does what it is taken from."""
    again, never = Primitive(3), Composition("-", B, Primitive(3))
    for e in (
        never,
        Composition("-", then(B, P), again),
        Composition("-", Composition("-", B, P), again),
        Composition("-", then(B, P), Composition("|", T, Primitive(4))),
        Composition("+", P, never),
        then(never, P),
        Limit(never, 3),
        Composition("-", never, P),
        Composition("|", never, Limit(never, 2)),
    ):
        assert shrink(e, _same, _same) == Never(), e
        assert [absence.operator for absence, _ in contradictions(e, _same, _same)], e
    for e, smaller in (
        (Composition("|", never, P), P),
        (Composition("|", P, never), P),
        (Composition("-", P, never), P),
        (Composition("-", B, then(again, P)), Composition("-", B, then(again, P))),
        (Composition("-", Limit(B, 2), Limit(again, 1)), Composition("-", Limit(B, 2), Limit(again, 1))),
    ):
        assert shrink(e, _same, _same) == smaller, e
    assert not list(contradictions(Composition("-", B, P), _same, _same))


def _tree(dice: Random, depth: int, numbers: list[int]) -> Detected:
    if depth == 0 or not numbers or dice.random() < 0.15:
        return Primitive(numbers.pop() if numbers else dice.randrange(PRIMITIVES))
    if dice.random() < 0.25:
        return Limit(_tree(dice, depth - 1, numbers), dice.choice([0, 1, 2, 3, 5, 8]))
    sign = dice.choice(("|", "+", "-", ";", ";"))
    return Composition(sign, _tree(dice, depth - 1, numbers), _tree(dice, depth - 1, numbers))  # type: ignore[arg-type]


def _found(e: Detected, occurrences: dict[int, dict[int, Instance]], cuts: list[int]) -> tuple[list[Instance], RowStep]:
    plan = Detector(e, None, (), (True,) * PRIMITIVES, ((),) * PRIMITIVES, frozenset(range(PRIMITIVES)))
    rows = RowStep(plan)
    found: list[Instance] = []
    for after, until in zip([-1, *cuts], [*cuts, 99], strict=True):
        here = {end: own for end, own in occurrences.items() if after < end <= until}
        found += rows.step({(): here}, until)[0] if here else []
    return found, rows


def _labels_hold(e: Detected, lengths: list[Time]) -> bool:
    """Whether what stands to the right of a sequence lasts no longer than its label says."""
    return all(
        (label := transform(c.right, lengths)[1]) is None or (c.label is not None and label <= c.label)
        for c in find(e, Composition)
        if c.operator == ";"
    )


@pytest.mark.parametrize("seed", range(1500))
def test_the_same_is_picked_with_all_parts(seed: int) -> None:
    dice = Random(seed)
    points = dice.random() < 0.5
    numbers = list(range(PRIMITIVES))
    dice.shuffle(numbers)
    written = _tree(dice, dice.choice([1, 2, 3]), numbers)
    longest = 0 if points else 4
    occurrences: dict[int, dict[int, Instance]] = {}
    for _ in range(dice.randrange(1, 30)):
        kind, end = dice.randrange(LABELS), dice.randrange(20)
        begin = max(end - dice.choice([0, 0, 1, 2, 4]), 0) if not points else end
        for p in (p for p in range(PRIMITIVES) if p % LABELS == kind):
            here = occurrences.setdefault(end, {})
            if p not in here or here[p][0] < begin:
                here[p] = (begin, end, {f"v{kind}.{begin}.{end}": 1})
    cuts = sorted(dice.sample(range(20), dice.randrange(4)))
    expected, _ = _found(written, occurrences, [])
    lengths: list[Time] = [longest] * PRIMITIVES
    made, label = transform(written, lengths)
    assert _labels_hold(made, lengths)
    assert _found(made, occurrences, cuts)[0] == expected, detected(written, NAMES)
    assert label is None or all(end - begin <= label for begin, end, _ in expected)
    small, _ = transform(shrink(written, _same, _same), lengths)
    assert _found(small, occurrences, cuts)[0] == expected, detected(written, NAMES)
    if isinstance(small, Never):
        assert not expected
    within = dice.choice([1, 3, 6])
    limited, _ = transform(written, lengths, within)
    assert [i for i in _found(limited, occurrences, cuts)[0] if i[1] - i[0] <= within] == [
        i for i in expected if i[1] - i[0] <= within
    ]
