"""This module makes programs that leave the planner a choice, each of which several laws of rewriting change.

Types have rates of all sizes, so that joins are worth storing; rules have joins in common, under other names; views are
read with constants and asked for through others; windows have conditions of their own; rules differ in constants and
in how far events may lie apart. A program has some of these kinds, so that laws meet. The streams are those of
`chains`, with three more types, of which two are mostly looked for in windows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.strategies import chains

RATES = ("1 per hour", "1 per min", "1 per sec", "20 per sec", "1000 per sec")
LASTING = {"a": " LASTS ANY", "b": "", "c": " LASTS AT MOST 2", "d": "", "g": "", "h": ""}
CONSTANTS = ("1", "2", "2.0", "3", '"1"')
TESTS = ("{0} > 1", "{0} <= 2", "{0} != 2", "{0} = 2", "({0} = 1 or {0} = 3)", "{0} is not null")
OWN = ("{0} > 1", "{0} < 3", "{0} != 2", "{0} != 1, {0} < 3", "{0} > {1}", "{0} > 1, {0} > {1}")


@dataclass(frozen=True, slots=True)
class Planned:
    """A program, its events, and what it is asked for, if that is not everything."""

    program: str
    events: list[dict[str, Any]]
    emit: frozenset[str]


def make(dice: Random) -> Planned:
    """A program of some kinds of rules."""
    kinds = dice.sample(KINDS, 5)
    rules: list[str] = []
    outputs: list[str] = []
    for number, kind in enumerate(kinds):
        made = kind(dice, f"p{number}")
        rules += made
        outputs += [rule.partition("(")[0] for rule in made if rule.startswith("p")]
    declared = [f"EVENT {label}(k: any, l: any){LASTING[label]}{_rate(dice)};" for label in LASTING]
    is_asked = any(rule.startswith("v") for rule in rules) or dice.random() < 0.5
    asked = dice.sample(sorted(set(outputs)), dice.randint(1, len(set(outputs)))) if is_asked else []
    dice.shuffle(rules)
    return Planned("\n".join([*declared, *rules]), stream(dice, 26), frozenset(asked))


def stream(dice: Random, size: int) -> list[dict[str, Any]]:
    """Events of few values, close together."""
    return [
        {**one, "event": dice.choice("dgh"), "time": [one["time"][0]] * 2} if dice.random() < 0.45 else one
        for one in chains.stream(dice, size)
    ]


def _rate(dice: Random) -> str:
    return f" RATE {dice.choice(RATES)}" if dice.random() < 0.8 else ""


def _chain(dice: Random, head: str) -> list[str]:
    """Events that join on different keys."""
    return [chains.rule(dice, head, ("a", "b", "c"))]


def _selective(dice: Random, head: str) -> list[str]:
    """Two or three events of which few meet, and others that come with any of them."""
    events = [f"e0: {dice.choice('ab')}(x, y)", f"e1: {dice.choice('ab')}(u, z)", f"e2: {dice.choice('cd')}(t, _)"]
    if dice.random() < 0.4:
        events.append(f"e3: {dice.choice('bd')}({dice.choice(('t', 's'))}, _)")
    names = ", ".join(one.partition(":")[0] for one in events)
    meet = dice.choice(("y + z = 4", "x = z", "y = u + 1", "x = u, y = z", "e0 before e1, x = u"))
    more = dice.choice(("", ", x != t", ", e0 before e2", ", w: extend(e2, 2), while w: not d(t, _)"))
    dice.shuffle(events)
    shown = dice.choice(("x, t", "y, z", "u, t"))
    return [f"{head}({shown}) <- {', '.join(events)}, {{{names}}} within {dice.randint(2, 5)}, {meet}{more};"]


def _common(dice: Random, head: str) -> list[str]:
    """Rules that have the same join, under other names and with other tests, and go on in different ways."""
    first, second = dice.sample("abc", 2)
    within, relation = dice.randint(2, 5), dice.choice(("", ", {0} before {1}", ", {1} before[0, 3] {0}"))
    goes_on = dice.sample(
        (
            "",
            "w: extend({j}, {t}), while w: not d({x}, _)",
            "n: d({x}, _), {{{i}, n}} within 6",
            "w: from-end({i}, {t})",
        ),
        2,
    )
    rules = []
    for number, (i, j, x, y, z) in enumerate((("i", "j", "x", "y", "z"), ("f", "g", "q", "r", "s"))):
        tests = dice.sample([f"{y} != {z}", f"{z} > 1", f"{y} <= 2"], dice.randint(0, 2))
        more = goes_on[number].format(i=i, j=j, x=x, t=dice.randint(1, 3))
        body = [f"{i}: {first}({x}, {y})", f"{j}: {second}({x}, {z})", *([more] if more else [])]
        conditions = [f"{{{i}, {j}}} within {within}{relation.format(i, j)}", *tests]
        rules.append(f"{head}{'xy'[number]}({x}, {number}) <- {', '.join([*body, *conditions])};")
    return rules


def _views(dice: Random, head: str) -> list[str]:
    """Events that are derived only to be read, with constants and comparisons, by one rule or by several."""
    view = f"v{head}"
    source = dice.choice("abc")
    heads = dice.sample(("x, y", "y, x", "x, 2", "x, x"), dice.randint(1, 2))
    rules = [f"{view}({shown}) <- i: {source}(x, y){_maybe(dice, 'y')};" for shown in heads]
    for number in range(dice.randint(1, 2)):
        read = dice.choice((f"{view}(x, {dice.choice(CONSTANTS)})", f"{view}(x, y)", f"{view}(x, y)"))
        test = f", {dice.choice(TESTS).format('y' if 'y' in read else 'x')}"
        body = dice.choice(
            (
                f"m: {read}",
                f"m: {read}, n: d(x, _), {{m, n}} within 3",
                f"m: {read}, n: b(x, z), k: c(_, z), {{m, n, k}} within 4",
            )
        )
        rules.append(f"{head}{'xy'[number]}(x) <- {body}{test};")
    return rules


def _wrapped(dice: Random, head: str) -> list[str]:
    """An event that is derived only to be taken apart by one rule, or by one that is taken apart itself."""
    view = f"v{head}"
    wrapper = f"{view}({dice.choice(('x, y', 'y, x', 'x, 2'))}) <- i: {dice.choice('abc')}(x, y){_maybe(dice, 'y')};"
    taker = f"m: {view}(x, y){_maybe(dice, 'y')}"
    if dice.random() < 0.4:
        return [wrapper, f"w{head}(y, x) <- {taker};", f"{head}(x) <- m: w{head}(x, z){_maybe(dice, 'z')};"]
    return [wrapper, f"{head}(x, y) <- {taker}{dice.choice(('', ', k: d(x, _), {m, k} within 3'))};"]


def _maybe(dice: Random, name: str) -> str:
    return f", {dice.choice(TESTS).format(name)}" if dice.random() < 0.3 else ""


def _windows(dice: Random, head: str) -> list[str]:
    """Windows with conditions of their own; what lies in them is read by nothing else."""
    inner = "gh"[int(head[-1]) % 2] if dice.random() < 0.9 else "d"
    rules = []
    common = dice.choice(OWN).format("z", "y")
    for number in range(dice.randint(1, 2)):
        own = common if dice.random() < 0.8 else dice.choice(OWN).format("z", "y")
        timer = dice.choice(("extend(e, 3)", "extend-begin(e, 2)", "from-end-backward(e, 4)"))
        outer = f"e: {dice.choice('ac')}(x, y), w: {timer}"
        match dice.choice(("not", "collect", "count")):
            case "not":
                rules.append(f"{head}{'xy'[number]}(x) <- {outer}, while w: not {inner}(x, z) where {{ {own} }};")
            case "collect":
                rules.append(
                    f"{head}{'xy'[number]}(y, sum(z)) <- {outer}, while w: collect {inner}(_, z) where {{ {own} }};"
                )
            case _:
                rules.append(
                    f"{head}{'xy'[number]}(x, count(*)) <- {outer}, while w: collect {inner}(x, z) where {{ {own} }};"
                )
    return rules


def _constants(dice: Random, head: str) -> list[str]:
    """Rules that differ in constants."""
    template = dice.choice(
        (
            "{h}(x) <- e: a(x, {c}), f: b(x, _), {{e, f}} within 3;",
            "{h}(x, y) <- e: b(x, y), f: c(_, z), {{e, f}} within 2, y = {c}, z > {d};",
            "{h}(x) <- e: c(x, y), w: extend(e, 2), while w: not b(x, {c});",
            "{h}(x) <- e: a(x, y), f: b(x, {c}), g: c(_, z), {{e, f, g}} within 3, z <= {d};",
        )
    )
    values = [(c, d) for c in CONSTANTS for d in CONSTANTS[:3]]
    return [
        template.format(h=f"{head}{'xyz'[number]}", c=c, d=d)
        for number, (c, d) in enumerate(dice.sample(values, dice.randint(2, 3)))
    ]


def _limits(dice: Random, head: str) -> list[str]:
    """Rules that differ in how far events may lie apart, of about one size, and maybe in a constant."""
    template = dice.choice(
        (
            "{h}(x) <- e: a(x, y), f: b(x, _), {{e, f}} within {t} ms, y != {c};",
            "{h}(x) <- e: b(x, _), f: c(x, {c}), e before[0, {t} ms] f;",
            "{h}(x, z) <- e: b(x, y), f: c(y, z), e before[0, {t} ms] f, w: extend(f, 1), while w: not d(x, {c});",
        )
    )
    constants = [dice.choice(CONSTANTS[:3]) for _ in range(4)]
    limits = dice.sample(range(2_100, 4_000, 100), 4)
    return [
        template.format(h=f"{head}{'xyzt'[number]}", c=c, t=t)
        for number, (c, t) in enumerate(zip(constants, limits, strict=True))
    ]


KINDS = (_chain, _selective, _common, _common, _views, _views, _wrapped, _windows, _windows, _constants, _limits)
"""Those of which a program has some; some come twice as often."""
