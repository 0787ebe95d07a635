"""This module makes up programs with any number of rules on a few event types, where all may depend on all.

Heads and bodies draw on the same five derived labels, so the dependency graph is one dense component per stratum:
rule k of a layer asks for events that hundreds of rules of the layer derive.
"""

from __future__ import annotations

LABELS = ("alarm", "notice", "trend", "spike", "pause")
HEADER = """\
TIME UNIT 1 min;
EVENT reading(sensor: string, area: int, value: float) RATE 1000 per sec;
EVENT alive(sensor: string);
TABLE location(sensor: string, area: int) FROM "locations.csv";
"""


def program(rules: int) -> str:
    """A program with that many rules, arrow and block rules mixed, half of them recursive through the same labels."""
    return HEADER + "".join(_rule(k) for k in range(rules))


def _rule(k: int) -> str:
    label, other = LABELS[k % 5], LABELS[(k * 7 + 3) % 5]
    match k % 4:
        case 0:
            return f"{label}(s, a) <- r: reading(s, a, v), t: reading(s, a, u), r before[0, {k + 1}] t, u - v > {k};\n"
        case 1:
            return (
                f"{label}(s, a) <- x: {other}(s, a), y: {label}(s, b), location(s, a), {{x, y}} within {k}, a != {k};\n"
            )
        case 2:
            return (
                f"silent{k}(s, count(n)) <- r: alive(s), w: extend(r, {k + 1}),\n"
                f"    while w: not alive(s), while w: collect {other}(n, _) where {{ n != s }};\n"
            )
        case _:
            return (
                f"DETECT {label} [ var S, var A ]\nON\n  and {{\n"
                f"    event x: {other} [ var S, var A ],\n"
                f"    or {{ event y: {label} [[ var S ]], event y: alive {{{{ sensor {{ var S }} }}}} }}\n"
                f"  }} where {{ {{x, y}} within {k + 1} min, var A > {k} }}\nEND\n"
            )


TYPES = tuple(f"t{k}" for k in range(10))


def flat(rules: int) -> str:
    """A program with that many rules on ten event types that do not depend on each other: joins, absences, averages."""
    header = "TIME UNIT 1 min;\n" + "".join(f"EVENT {t}(id: int, key: string, value: float);\n" for t in TYPES)
    return header + "".join(_flat_rule(k) for k in range(rules))


def _flat_rule(k: int) -> str:
    a, b, c = TYPES[k % 10], TYPES[(3 * k + 1) % 10], TYPES[(7 * k + 2) % 10]
    match k % 3:
        case 0:
            return (
                f"join{k}(i, j) <- a: {a}(i, x, v), b: {b}(j, x, w), c: {c}(_, x, _),"
                f" a before[0, {k + 1}] b, b before[0, 10] c, v < w;\n"
            )
        case 1:
            return f"none{k}(i) <- a: {a}(i, x, _), w: extend(a, {k + 1}), while(excl,incl) w: not {b}(_, x, _);\n"
        case _:
            window = f"w: from-end-backward(a, {k + 1})"
            return f"mean{k}(x, avg(v)) <- a: {a}(_, x, _), {window}, while w: collect {b}(_, x, v);\n"
