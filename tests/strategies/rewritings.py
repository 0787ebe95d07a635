"""This module writes programs in other words: other names for variables and events, other orders, a rule more."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from ephemera.base.span import Source
from ephemera.base.tree import rebuild, walk
from ephemera.syntax.format import format
from ephemera.syntax.nodes import EventType, Program, Rule, Statement, Stratum
from ephemera.syntax.parser import parse
from ephemera.terms.nodes import As, Name, Var


def in_other_words(text: str, dice: Random) -> str:
    """The program with other names in each rule, and its statements in another order."""
    program = parse(Source("program.eq", text)).program
    statements = [_renamed(s, dice) if isinstance(s, Rule) else s for s in program.statements]
    if not any(isinstance(s, Stratum) for s in statements):
        dice.shuffle(statements)
    return format(Program(tuple(statements)))


def with_a_rule_more(text: str, dice: Random) -> str:
    """The program with a rule that has nothing to do with the others, somewhere."""
    statements = list(parse(Source("program.eq", text)).program.statements)
    more = "unrelated-answer(k) <- w: unrelated(k), k > 1;"
    if any(isinstance(s, EventType) for s in statements):
        more += "EVENT unrelated(k: int);"
    for statement in parse(Source("more.eq", more)).program.statements:
        statements.insert(dice.randrange(len(statements) + 1), statement)
    return format(Program(tuple(statements)))


def _renamed(rule: Rule, dice: Random) -> Statement:
    own = dict.fromkeys(name for node in walk(rule) if (name := _name(node)) is not None)
    others = [f"{dice.choice('abcxyzuv')}{chr(97 + k)}" for k in range(len(own))]
    names = dict(zip(own, others, strict=True))

    def change(node: Any) -> Any:
        match node:
            case Var(name) | Name(name):
                return replace(node, name=names[name])
            case As(variable):
                return replace(node, variable=names[variable])
            case _:
                return node

    return rebuild(rule, change)


def _name(node: Any) -> str | None:
    match node:
        case Var(name) | Name(name) | As(name):
            return name
        case _:
            return None
