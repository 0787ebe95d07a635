"""This module knows the names of the arguments of answers, for systems that have names for values."""

from __future__ import annotations

from ephemera.formats.answer_order import AnswerPart
from ephemera.formats.answers import AnswerBatch
from ephemera.formats.encode_typed_arrow import Held


def names_by_shape(answers: AnswerBatch) -> dict[tuple[str, int], tuple[str, ...]]:
    """The names of arguments for each type of answers that has them by position, and for how many there are."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for part in answers.parts:
        names = argument_names(answers, part)
        if names is not None:
            found.setdefault((part.events.label, len(names)), names)
    return found


def argument_names(answers: AnswerBatch, part: AnswerPart) -> tuple[str, ...] | None:
    """The names of the arguments of some answers, as columns have them; None for terms and messages."""
    names = answers.form.layouts[part.program].names
    label, arity = part.events.label, part.events.arity
    if part.message is not None or arity is None or not names.are_flat(label, arity):
        return None
    return tuple(names.names(label, arity))


def held_by(answers: AnswerBatch, part: AnswerPart) -> list[tuple[str, Held]]:
    """The names of the arguments with what each holds by the rules."""
    columns = answers.form.layouts[part.program].columns
    return [(name, columns[name]) for name in argument_names(answers, part) or ()]
