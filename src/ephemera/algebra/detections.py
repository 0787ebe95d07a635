"""This module lowers expressions of the event detection algebra: their primitives become inputs of one operator."""

from __future__ import annotations

from collections import Counter

from ephemera.algebra.attributes import primitive, variables
from ephemera.algebra.conditions import length
from ephemera.algebra.nodes import Composition, Detected, Detection, Expression, Limit, Primitive
from ephemera.algebra.queries import Asking, Queries
from ephemera.algebra.scalar import TRUE, Matches
from ephemera.rules.nodes import AlgebraLiteral
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import bindings, pattern_bindings, primitives
from ephemera.syntax.nodes import Algebra, AlgebraExpression, Composed, Limited


def bound_by(expression: AlgebraExpression) -> frozenset[str]:
    """The variables that an expression binds, surely or in some alternative."""
    return bindings(Algebra(None, expression)).bound


def detection(literal: AlgebraLiteral, queries: Queries) -> Detection:
    """An algebra literal as an operator; instances are found for each value of the shared variables apart."""
    times = Counter(v for atom in primitives(literal.expression) for v in pattern_bindings(atom).sure)
    shared = frozenset(v for v, count in times.items() if count > 1) | {v.name for v in literal.per}
    inputs: list[Expression] = []
    labels: list[str] = []

    def lowered(e: AlgebraExpression) -> Detected:
        match e:
            case Composed(operator, left, right):
                return Composition(operator, lowered(left), lowered(right))
            case Limited(operand, duration):
                return Limit(lowered(operand), length(duration))
            case _:
                name = primitive(literal.name, len(inputs) + 1)
                found = pattern_bindings(e)
                tested = bool((found.perhaps | found.never) & shared)
                inputs.append(queries.use(Asking(e, tested), name))
                label = pattern_label(e)
                labels.append("any event" if label is None else str(label))
                known = variables(shared | found.bound)
                return Primitive(len(inputs) - 1, Matches(name, e, known) if tested else TRUE)

    expression = lowered(literal.expression)
    return Detection(literal.name, tuple(inputs), expression, literal.restricted, variables(shared), tuple(labels))
