"""This module compares the dataclasses of `base.lazy_dataclass` with those that Python makes of the same classes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from ephemera.base import lazy_dataclass

Maker = Callable[..., Callable[[type], type]]


def classes(make: Maker) -> SimpleNamespace:
    """Some shapes that nodes and states have."""

    @make(frozen=True, slots=True)
    class Node:
        span: int = field(default=0, kw_only=True, compare=False, repr=False)

    @make(frozen=True, slots=True)
    class Leaf(Node):
        """A node with a value."""

        name: str

    @make(frozen=True, slots=True)
    class Tree(Node):
        left: Any
        right: Any = None
        more: dict[str, int] = field(default_factory=dict)

        def size(self) -> int:
            return 1 + len(self.more)

    @make(frozen=True, slots=True)
    class Computed:
        value: int
        _key: int | None = field(init=False, repr=False, default=None)
        seen: list[int] = field(init=False, default_factory=list)

        def __post_init__(self) -> None:
            self.seen.append(self.value)

        def __repr__(self) -> str:
            return f"<{self.value}>"

    @make(frozen=True, slots=True)
    class Alike:  # noqa: PLW1641 - dataclasses add what is missing
        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Alike) and self.value % 10 == other.value % 10

    @make(frozen=True, slots=True, eq=False)
    class Single:
        value: int

    @make(slots=True)
    class State:
        count: int
        names: list[str] = field(default_factory=list)

    every = SimpleNamespace(**{one.__name__: one for one in (Node, Leaf, Tree, Computed, Alike, Single, State)})
    for name, one in vars(every).items():
        one.__qualname__ = name
    return every


OURS, THEIRS = classes(lazy_dataclass.dataclass), classes(dataclasses.dataclass)
BOTH = pytest.mark.parametrize("of", [OURS, THEIRS], ids=["ours", "theirs"])

VALUES: list[Callable[[SimpleNamespace], Any]] = [
    lambda of: of.Node(),
    lambda of: of.Node(span=3),
    lambda of: of.Leaf("a"),
    lambda of: of.Leaf("a", span=7),
    lambda of: of.Leaf(name="b"),
    lambda of: of.Tree(1),
    lambda of: of.Tree(of.Leaf("a"), of.Leaf("b"), {"x": 1}),
    lambda of: of.Tree(of.Leaf("a"), right=of.Leaf("b"), more={"x": 1}, span=2),
    lambda of: of.Computed(4),
    lambda of: of.Alike(14),
    lambda of: of.Alike(4),
    lambda of: of.Single(4),
    lambda of: of.State(1),
    lambda of: of.State(1, ["a"]),
]


def hashed(value: Any) -> int | str:
    try:
        return hash(value)
    except TypeError as error:
        return str(error)


def test_values_are_equal_and_printed_as_pythons_own() -> None:
    ours, theirs = [make(OURS) for make in VALUES], [make(THEIRS) for make in VALUES]
    assert [repr(one) for one in ours] == [repr(one) for one in theirs]
    assert [[a == b for a in ours] for b in ours] == [[a == b for a in theirs] for b in theirs]
    for one, other in zip(ours, theirs, strict=True):
        if type(one) is not OURS.Single:  # which has the identity of an object
            assert hashed(one) == hashed(other)


def test_fields_and_patterns_are_pythons_own() -> None:
    assert all(is_dataclass(one) for one in vars(OURS).values())
    for name, ours in vars(OURS).items():
        theirs = getattr(THEIRS, name)
        assert [f.name for f in fields(ours)] == [f.name for f in fields(theirs)]
        assert ours.__match_args__ == theirs.__match_args__
        assert ours.__slots__ == theirs.__slots__
        assert not hasattr(ours.__new__(ours), "__dict__")


@BOTH
def test_what_is_frozen_stays_as_it_is(of: SimpleNamespace) -> None:
    leaf = of.Leaf("a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        leaf.name = "b"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del leaf.name
    state = of.State(1)
    state.count = 2
    assert state == of.State(2)


@BOTH
def test_copies_are_equal(of: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, one in vars(of).items():
        monkeypatch.setattr(sys.modules[__name__], name, one, raising=False)
    for make in VALUES:
        value = make(of)
        for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert type(other) is type(value)
            assert repr(other) == repr(value)
            assert isinstance(value, of.Single) or other == value
    tree = of.Tree(1, span=5)
    assert replace(tree, left=2).left == 2
    assert replace(tree, left=2).span == 5
    assert tree.size() == 1


@BOTH
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda of: of.Leaf(), r"Leaf.__init__\(\) missing 1 required positional argument: 'name'"),
        (lambda of: of.Leaf("a", 7), r"Leaf.__init__\(\) takes 2 positional arguments but 3 were given"),
        (lambda of: of.Tree(1, other=2), r"Tree.__init__\(\) got an unexpected keyword argument 'other'"),
        (lambda of: of.Computed(1, _key=2), r"Computed.__init__\(\) got an unexpected keyword argument '_key'"),
    ],
)
def test_wrong_arguments_are_told(of: SimpleNamespace, call: Callable[[SimpleNamespace], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(of)


def test_what_holds_itself_is_printed_once() -> None:
    state = OURS.State(1)
    state.names.append(state)
    assert repr(state) == "State(count=1, names=[...])"


def test_defaults_are_not_shared() -> None:
    one, other = OURS.State(1), OURS.State(1)
    one.names.append("a")
    assert other.names == []


def test_a_class_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="without slots"):
        lazy_dataclass.dataclass(frozen=True, slots=False)(type("A", (), {}))
