"""This module names the columns of tables of answers, which follow from the program alone."""

from __future__ import annotations

from collections.abc import Sequence

from ephemera.rules.nodes import Ruleset
from ephemera.syntax.nodes import Derive, Raise
from ephemera.terms.nodes import Var

DATA, RECIPIENT, TRANSPORT = "data", "recipient", "transport"
_TAKEN = ("event", "begin", "end", DATA, RECIPIENT, TRANSPORT)
"""Columns of answers that no attribute can have."""


class AnswerColumns:
    """The columns of answers: attributes, else variables of heads, else positions; `data` is that of terms."""

    def __init__(self, rules: Ruleset) -> None:
        self._catalogue = rules.resolved.catalogue
        self._variables = _variables(rules)
        self.declared: dict[str, set[str]] = {}
        """The columns in their order, with the types that are declared for them."""
        for number, rule in enumerate(rules.resolved.rules, 1):
            if isinstance(rule.head, Derive):
                self._expect(str(rule.head.label), len(rule.head.arguments))
            elif isinstance(rule.head, Raise):
                self.declared |= {DATA: set(), RECIPIENT: {"string"}, TRANSPORT: {"string"}}
            else:
                for label, numbers in self._catalogue.derived.items():
                    if number in numbers:
                        self._expect(label, None)

    def _expect(self, label: str, arity: int | None) -> None:
        schema = self._catalogue.events.get(label)
        types = [t for _, t in schema.attributes or ()] if schema is not None else []
        for k, name in enumerate(self.names(label, arity)):
            self.declared.setdefault(name, set()).update(types[k : k + 1])

    def are_flat(self, label: str, arity: int) -> bool:
        """Whether answers of a label with so many values have a column for each; a term with one child looks alike."""
        return self._catalogue.attributes(label) is not None or (label, arity) in self._variables

    def names(self, label: str, arity: int | None) -> list[str]:
        """The columns of a label."""
        names = self._catalogue.attributes(label)
        if names is not None:
            return _standing(names)
        return [DATA] if arity is None else self._variables.get((label, arity), _standing([None] * arity))


def _variables(rules: Ruleset) -> dict[tuple[str, int], list[str]]:
    """For each label and arity the variables that all its heads show at each position."""
    found: dict[tuple[str, int], list[set[str | None]]] = {}
    for rule in rules.resolved.rules:
        if isinstance(rule.head, Derive):
            arguments = rule.head.arguments
            places = found.setdefault((str(rule.head.label), len(arguments)), [set() for _ in arguments])
            for place, argument in zip(places, arguments, strict=True):
                place.add(argument.name if isinstance(argument, Var) else None)
    return {key: _standing([p.pop() if len(p) == 1 else None for p in places]) for key, places in found.items()}


def _standing(names: Sequence[str | None]) -> list[str]:
    """Names as columns: by position where there is none, or it stands twice or is taken."""
    by_position = [f"value{k}" for k in range(1, len(names) + 1)]
    free = [n is not None and n not in _TAKEN and names.count(n) == 1 for n in names]
    standing = [str(n) if good else p for n, good, p in zip(names, free, by_position, strict=True)]
    return standing if len(set(standing)) == len(standing) else by_position
