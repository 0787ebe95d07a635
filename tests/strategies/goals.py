"""This module generates programs that are asked for some of their events only: views, and rules that read them.

Views derive events with plain heads from the base events, by choosing, naming anew and leaving out, or by joining;
some read other views. Rules read them with constants, with comparisons, in windows and together with base events. Some
of the events that views derive come from outside, too, and numbers come in both forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from ephemera.base.span import Source
from ephemera.pipeline import Sound, check, sound
from ephemera.terms.atoms import attributes_term
from ephemera.terms.events import Event, Interval
from ephemera.terms.values import Term, Value

from .streams import Dice

VALUES: tuple[Value, ...] = (1, 2, 3, 1.0, 2.0, "x", None)
CONSTANTS = ("1", "2", "2.0", '"x"')
COMPARISONS = (
    *("{} = 1", "{} > 1", "{} <= 2", "2 >= {}", "{} != 2"),
    *("({} = 1 or {} = 3)", "not {} = 2", "{} is not null"),
)
SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Goal:
    """A program, its events, and what it is asked for."""

    program: str
    checked: Sound
    events: tuple[Event, ...]
    emit: frozenset[str]


def goals(count: int) -> Iterator[Goal]:
    """The same goals every time."""
    for seed in range(count):
        goal = make(Dice(Random(seed).randrange))
        if goal is not None:
            yield goal


def make(dice: Dice) -> Goal | None:
    """A goal by the dice, or None if its program is refused."""
    declares = dice.chance(40)
    declared = [f"EVENT {label}(x: any, y: any){dice.pick(('', ' LASTS AT MOST 3'))};" for label in "ab"]
    rules: list[str] = []
    views: list[str] = []
    for number in range(1, dice.number(1, 3) + 1):
        rules += [_view(dice, f"v{number}", ["a", "b", *views]) for _ in range(dice.weighed({1: 4, 2: 1}))]
        views.append(f"v{number}")
    outputs = [f"p{number}" for number in range(1, dice.number(1, 3) + 1)]
    if dice.chance(35):  # a chain of views that only wrap, and one that reads the last of them
        rules = [_wrapper(dice, label, before) for label, before in zip(views, ["a", *views], strict=False)]
        rules += [_taker(dice, outputs[0], views[-1])]
        outputs = outputs[:1]
    else:
        rules += [_reader(dice, label, views, outputs[:k]) for k, label in enumerate(outputs)]
    if dice.chance(20):
        to = 'to(recipient="r", transport="console")'
        rules.append(f"RAISE {to} {{ m {{ var X }} }} ON event e: {dice.pick(views)} {{{{ var X }}}} END")
    program = "\n".join(["TIME UNIT 1 sec;", *(declared if declares else []), *dice.shuffled(rules)])
    checked = check(Source("goal.eq", program))
    if checked.rules is None:
        return None
    asked = [label for label in outputs if dice.chance(60)] or outputs[:1]
    asked += [view for view in views if dice.chance(10)]
    labels = ["a", "a", "b", "b", *views]
    events = [_event(dice, dice.pick(labels), declares=declares) for _ in range(dice.number(3, 14))]
    return Goal(program, sound(checked), tuple(dict.fromkeys(events)), frozenset(asked))


def _event(dice: Dice, label: str, *, declares: bool) -> Event:
    begin = dice.number(0, 9)
    length = dice.weighed({0: 4, 1: 1, 2: 1}) if label in ("a", "b") and not declares else 0
    values = tuple(dice.pick(VALUES) for _ in range(2))
    is_named = declares and label in ("a", "b")
    term = attributes_term(label, list(zip("xy", values, strict=True))) if is_named else Term(label, values)
    return Event(term, Interval(begin * SECOND, (begin + length) * SECOND))


def _view(dice: Dice, label: str, read: list[str]) -> str:
    first = dice.pick(read)
    head = dice.pick(("x, y", "y, x", "x, x", "x, 1", '"x", y', "x, 2", "y, y"))
    condition = f", {_comparison(dice, 'xy')}" if dice.chance(35) else ""
    match dice.weighed({"choose": 5, "constant": 2, "join": 2, "absent": 1, "letter": 1}):
        case "constant":
            return f"{label}(x, 3) <- i: {first}(x, {dice.pick(CONSTANTS)}){condition.replace('y', 'x')};"
        case "join":
            second = dice.pick(read)
            return f"{label}({head}) <- i: {first}(x, y), j: {second}(x, _), {{i, j}} within 4{condition};"
        case "absent":
            return f"{label}({head}) <- i: {first}(x, y), w: extend(i, 2), while(excl,incl) w: not b(x, _){condition};"
        case "letter":
            return f"{label}(x, 6 / y) <- i: {first}(x, y){condition};"
        case _:
            body = dice.pick((f"{first}(x, y)", f"{first}(x, y)", f"{first}(y, x)"))
            return f"{label}({head}) <- i: {body}{condition};"


def _wrapper(dice: Dice, label: str, read: str) -> str:
    head, pattern = dice.pick(("x, y", "y, x", "x, 1", "y, 2")), dice.pick(("x, y", "x, y", "y, x"))
    condition = f", {_comparison(dice, 'xy')}" if dice.chance(25) else ""
    return f"{label}({head}) <- i: {read}({pattern}){condition};"


def _taker(dice: Dice, label: str, view: str) -> str:
    atom = dice.pick((f"{view}(x, y)", f"{view}(x, y)", f"{view}(x, _)", f"{view}(x, 1)"))
    bound = "xy" if "y" in atom.removeprefix(view) else "x"
    more = f", {_comparison(dice, bound)}" if dice.chance(40) else ""
    match dice.pick(("plain", "join", "window")):
        case "plain":
            return f"{label}({dice.pick(bound)}, 7) <- m: {atom}{more};"
        case "join":
            order = dice.pick(("m before j", "j before m", "{m, j} within 3", "{m, j} within 4, not m equals j"))
            return f"{label}(x, z) <- m: {atom}, j: {dice.pick(('a', 'b'))}({dice.pick('xu')}, z), {order}{more};"
        case _:
            return f"{label}(x) <- m: {atom}, j: b(x, _), m before j, from m until j: not a(x, _){more};"


def _reader(dice: Dice, label: str, views: list[str], earlier: list[str]) -> str:
    view = dice.pick([*views, *views, *earlier])
    atom = dice.weighed(
        {f"{view}(x, y)": 4, f"{view}(x, {dice.pick(CONSTANTS)})": 3, f"{view}(x, _)": 2, f"{view}(x, x)": 1}
    )
    bound = "xy" if "y" in atom.removeprefix(view) else "x"
    conditions = [_comparison(dice, bound) for _ in range(dice.weighed({0: 3, 1: 3, 2: 1}))]
    more = "".join(f", {condition}" for condition in conditions)
    shown = dice.pick((*bound, "x, 7", 'concat(x, "")', "x + 1"))
    match dice.weighed({"plain": 4, "join": 4, "absence": 2, "collect": 2, "count": 1, "same": 1}):
        case "join":
            return f"{label}({shown}, z) <- m: {atom}, j: {dice.pick(('a', 'b'))}(x, z), {{m, j}} within 3{more};"
        case "absence":
            own = f" where {{ {_comparison(dice, bound)} }}" if dice.chance(40) else ""
            return f"{label}(x) <- j: b(x, _), w: extend-begin(j, 3), while w: not {atom}{own};"
        case "collect":
            own = f" where {{ {_comparison(dice, bound)} }}" if dice.chance(40) else ""
            other = atom.replace("(x", "(z")
            window = f"w: extend-begin(j, 3), while w: collect {other}{own.replace('x', 'z')}"
            return f"{label}(u, count(*)) <- j: a(u, _), {window};"
        case "count":
            return f"{label}(x, count(z)) <- m: {atom}, w: extend(m, 2), while w: collect a(z, _){more};"
        case "same":
            return f"{label}(x) <- m: {atom}, n: {view}(x, _), m != n, {{m, n}} within 3{more};"
        case _:
            return f"{label}({shown}) <- m: {atom}{more};"


def _comparison(dice: Dice, names: str) -> str:
    name = dice.pick(names)
    return dice.pick(COMPARISONS).format(name, name)
