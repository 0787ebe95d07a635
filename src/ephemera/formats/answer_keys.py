"""This module gives answers and messages keys: equal ones have equal keys, whichever engine found them, and when.

The key is made from what the rules mean that derive its label or send it there, from where it goes, and from its label,
times and data. It does not depend on batches, places or restarts, nor on what else the program says. So whoever has
seen a key has seen the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from ephemera.formats.addresses import may_go
from ephemera.physical.plan import PhysicalPlan
from ephemera.rules.declare import construct_label
from ephemera.syntax.nodes import Raise
from ephemera.terms.addresses import Address
from ephemera.terms.events import Event


def key_of(rules: Sequence[str], to: Address | None, event: Event) -> str:
    """The key of an answer that rules with these fingerprints derive; `to` is where it goes if it is a message."""
    told = () if to is None else (("recipient", to[0]), ("transport", to[1]))
    hashed = blake2b(digest_size=16)
    for token in _tokens((tuple(sorted(set(rules))), *told, event.key)):
        hashed.update(token.encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


class RulePrints:
    """The fingerprints of the rules of a program by what they derive or send, and where."""

    def __init__(self, physical: PhysicalPlan) -> None:
        plan = physical.logical
        self._known: dict[tuple[str, Address | None], tuple[str, ...]] = {}
        self._rules: list[tuple[str | None, Raise | None, str]] = []
        for name, point in plan.points.items():
            if point.kind != "rule":
                continue
            one = physical.rewritten.prints[name]
            head = plan.normal[point.normal or 0].head
            sends = head if isinstance(head, Raise) else None
            label = point.label if sends is None else construct_label(sends.term)
            self._rules.append((label, sends, one.fingerprint))

    def of(self, label: str, to: Address | None) -> tuple[str, ...]:
        """Those that derive a label, or send it there; where data decides on either, it may be any."""
        if (label, to) not in self._known:
            own = {f for known, head, f in self._rules if known in (label, None) and _sends(head, to)}
            self._known[label, to] = tuple(sorted(own))
        return self._known[label, to]


def _sends(head: Raise | None, to: Address | None) -> bool:
    return to is None if head is None else to is not None and may_go(head, to)


def _tokens(key: object) -> Iterator[str]:
    """What a key consists of, so that equal keys have the same text and others have not; terms may be deep."""
    waiting = [key]
    while waiting:
        match waiting.pop():
            case tuple() as inner:
                yield f"({len(inner)} "
                waiting.extend(reversed(inner))
            case str() as text:
                yield f"s{len(text)}:{text}"
            case bool() as truth:
                yield "t" if truth else "f"
            case float() as number if not number.is_integer():
                yield f"d{number!r} "
            case number:
                yield f"i{int(number)} "  # type: ignore[call-overload]
