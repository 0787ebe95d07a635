"""This module says which events programs can be asked for, and what is wrong with a name that is none of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ephemera.base.suggest import suggestion
from ephemera.rules.declare import construct_label, head_label
from ephemera.rules.nodes import Resolved
from ephemera.syntax.nodes import Head, Raise


def emitted_label(head: Head) -> str | None:
    """The name of what a rule gives, an event or a message; None where a variable decides."""
    return construct_label(head.term) if isinstance(head, Raise) else head_label(head)


def unknown_emitted(names: Iterable[str], programs: Sequence[Resolved]) -> str | None:
    """What to tell of the first name that none of some programs can give; None if they can give all."""
    labels = [emitted_label(rule.head) for program in programs for rule in program.rules]
    if None in labels:
        return None  # a variable decides, so it may be any name
    known = sorted({label for label in labels if label is not None})
    wrong = next((name for name in names if name not in known), None)
    if wrong is None:
        return None
    is_input = any(wrong in program.catalogue.events for program in programs)
    meant = None if is_input else suggestion(wrong, known)
    what = f"`{wrong}` comes from outside and is never emitted" if is_input else f"there is no event `{wrong}` to emit"
    hint = f"did you mean `{meant}`? " if meant is not None else ""
    there = f"there are {', '.join(known)}" if known else "no rule derives anything"
    return f"{what}; {hint}{there}"


def asked_for(emit: str | Iterable[str], program: Resolved) -> frozenset[str]:
    """The names that a program is asked for, one or several; one that it cannot give is a `ValueError`."""
    names = [emit] if isinstance(emit, str) else list(emit)
    wrong = unknown_emitted(names, [program])
    if wrong is not None:
        raise ValueError(wrong)
    return frozenset(names)
