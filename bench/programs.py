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
