"""This module checks event identifiers: each is defined once on every way through a rule, and used where it is.

An identifier's scope is the rule. The branches of an `or` may each define it; used outside, it must be defined
in every branch. The identifier of an accumulated query is seen only by that query's own conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.span import Span
from ephemera.base.suggest import fresh
from ephemera.base.tree import find
from ephemera.rules.alternatives import cases
from ephemera.rules.findings import Findings, did_you_mean, listed
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import Defined, bindings, definitions, event_names, is_event_comparison
from ephemera.syntax.nodes import (
    CONDITIONS,
    Accumulation,
    Algebra,
    And,
    At,
    AtMost,
    Between,
    Comparison,
    Condition,
    Event,
    Or,
    Query,
    Rule,
    Timer,
    Where,
    While,
)
from ephemera.terms.nodes import Aggregate, Name, Node


def check_identifiers(rule: Rule, findings: Findings) -> None:
    """Tells identifiers that are unknown, given twice, or defined in some branches only."""
    _Identifiers(rule, findings).check()


class _Identifiers:
    def __init__(self, rule: Rule, findings: Findings) -> None:
        self._rule = rule
        self._findings = findings
        self._variables = bindings(rule.body).all
        self._accumulated = {a.event.name.name: a.event for a in find(rule.body, Accumulation) if a.event.name}
        """The events of windows by their identifiers, which only their own conditions know."""
        self._whole = definitions(rule.body)
        self._no_events = dict(_no_events(rule.body))
        self._taken = set(self._whole.some)

    def check(self) -> None:
        whole = self._whole
        self._query(self._rule.body, Defined())
        for node in (self._rule.head, *self._rule.having):
            self._result(node, whole)
        self._cycles()

    def _query(self, query: Query | Condition, outside: Defined) -> None:
        match query:
            case And(items):
                self._duplicates(items)
                seen = _merged(outside, definitions(query))
                for item in items:
                    self._query(item, seen)
            case Or(items):
                for item in items:
                    self._query(item, outside)
            case Where(inner, conditions):
                self._query(inner, outside)
                seen = _merged(outside, definitions(inner))
                for condition in conditions:
                    self._condition(condition, seen)
            case Timer(name, _, anchor, lasts):
                if isinstance(lasts, AtMost):
                    self._told(lasts, anchor, _leaving_out(outside, name))
                itself = name is not None and anchor.name == name.name  # which is a cycle, told below
                if not itself and anchor.name not in outside.sure:
                    self._uses([anchor], _leaving_out(outside, name))
            case Accumulation():
                self._accumulation(query, outside)
            case At(moment, _, _):
                self._uses([moment], outside)
            case _ if isinstance(query, CONDITIONS):
                self._condition(query, outside)

    def _told(self, lasts: AtMost, anchor: Name, outside: Defined) -> None:
        """What says how long a timer is: events, and its anchor, which are there before it."""
        names = list(event_names(lasts, self._variables))
        self._uses(names, outside)
        timers = {t.name.name for t in find(self._rule.body, Timer) if t.name is not None} - {anchor.name}
        for name in (n for n in names if n.name in timers):
            self._findings.add(
                Code.TIMER_CYCLE,
                f"`{name.name}` is a timer, and how long this one is has to be known without it",
                name.span,
                help=[Help(f"anchor this one to `{name.name}`, or compute the length of events")],
            )

    def _accumulation(self, query: Accumulation, outside: Defined) -> None:
        match query.window:
            case While(event, _, _):
                self._window(event, outside)
            case Between(first, last):
                self._window(first, outside)
                self._window(last, outside)
        own = query.event.name
        seen = outside
        if own is not None:
            if own.name in outside.some:
                self._duplicate(own, outside.some[own.name])
            seen = _merged(outside, Defined({own.name: own}, {own.name: own}))
        for condition in query.conditions:
            self._condition(condition, seen)

    def _duplicates(self, items: tuple[Query | Condition, ...]) -> None:
        seen: dict[str, Name] = {}
        for item in items:
            for name, node in definitions(item).some.items():
                if name in seen:
                    self._duplicate(node, seen[name])
                seen.setdefault(name, node)

    def _duplicate(self, node: Name, before: Name) -> None:
        free = fresh(node.name, self._taken)
        self._taken.add(free)
        self._findings.add(
            Code.DUPLICATE_IDENTIFIER,
            f"the identifier `{node.name}` is given to two events of the rule",
            node.span,
            related=[Related(before.span, "given here before")],
            help=[Help(f"give this one a name of its own, such as `{free}`", (Edit(node.span, free),))],
        )

    def _condition(self, node: Node, seen: Defined) -> None:
        self._uses(event_names(node, self._variables), seen)
        for comparison in find(node, Comparison):
            if is_event_comparison(comparison, self._variables):
                self._compared(comparison, seen)

    def _result(self, node: Node, whole: Defined) -> None:
        """The head or a condition on the result: its aggregates know the times of collected events, too."""
        inside = {id(name) for aggregate in find(node, Aggregate) for name in find(aggregate, Name)}
        collected = self._collected() if inside else Defined()
        for name in event_names(node, self._variables):
            if id(name) not in inside or name.name in whole.some:
                self._uses([name], whole)
            elif name.name in self._collected_twice():
                self._two_collected(name)
            else:
                self._uses([name], _merged(whole, collected))
        for comparison in find(node, Comparison):
            if is_event_comparison(comparison, self._variables):
                self._compared(comparison, whole)

    def _collections(self) -> list[list[Name]]:
        """The names of the events that are collected, for each alternative."""
        return [
            [m.event.name for m in case if isinstance(m, Accumulation) and m.mode != "not" and m.event.name is not None]
            for case in cases(self._rule.body)
        ]

    def _collected(self) -> Defined:
        """Collected events by their identifiers: in every alternative, and in at least one."""
        every = [{name.name: name for name in names} for names in self._collections()]
        some = {name: node for names in every for name, node in names.items()}
        return Defined({name: node for name, node in some.items() if all(name in names for names in every)}, some)

    def _collected_twice(self) -> frozenset[str]:
        counts = (Counter(name.name for name in names) for names in self._collections())
        return frozenset(name for count in counts for name, times in count.items() if times > 1)

    def _two_collected(self, name: Name) -> None:
        first, second = [n for names in self._collections() for n in names if n.name == name.name][:2]
        free = fresh(name.name, self._taken | self._accumulated.keys())
        self._findings.add(
            Code.DUPLICATE_IDENTIFIER,
            f"two collections of the rule call their events `{name.name}`, and this may be of either",
            name.span,
            related=[Related(first.span, "given here"), Related(second.span, "and here")],
            help=[Help(f"give one of them a name of its own, such as `{free}`", (Edit(second.span, free),))],
        )

    def _compared(self, comparison: Comparison, seen: Defined) -> None:
        """Events are the same or not; what is none, such as a timer, has nothing but its time."""
        sides = [side for side in (comparison.left, comparison.right) if isinstance(side, Name)]
        if not all(side.name in seen.some for side in sides):
            return
        for side in sides:
            own = self._accumulated.get(side.name)
            if own is not None and seen.some[side.name] is own.name:
                what = dict(_no_events(own)).get(side.name)
            else:
                what = self._no_events.get(side.name)
            if what is None:
                continue
            same = f"{sides[0].name} equals {sides[1].name}"
            written = same if comparison.operator == "=" else f"not ({same})"
            self._findings.add(
                Code.MIXED_COMPARISON,
                f"`{side.name}` is {what} and no event, so it is not the same as any",
                comparison.span,
                help=[Help(f"compare their times: `{written}`", (Edit(comparison.span, written),))],
            )
            return

    def _uses(self, names: Iterator[Name] | list[Name], seen: Defined) -> None:
        for name in names:
            if name.name in seen.sure:
                continue
            if name.name in seen.some:
                self._partial(name, seen)
            else:
                self._unknown(name, seen)

    def _partial(self, name: Name, seen: Defined) -> None:
        self._findings.add(
            Code.PARTIAL_IDENTIFIER,
            f"`{name.name}` is defined in some branches of the `or` only",
            name.span,
            related=[Related(seen.some[name.name].span, "defined here")],
            help=[Help(f"define `{name.name}` in every branch, or use it within the branch that does")],
        )

    def _unknown(self, name: Name, seen: Defined) -> None:
        notes = [f"the rule's identifiers are {listed(sorted(seen.some))}"] if seen.some else []
        otherwise = f"write `{name.name}:` before the event that is meant"
        if name.name in self._variables:
            notes.insert(0, f"`{name.name}` is a variable; an event's identifier stands before its pattern")
            otherwise = "write the identifier of the event that is meant"
        if name.name in self._accumulated:
            self._out_of_reach(name)
            return
        self._findings.add(
            Code.UNKNOWN_IDENTIFIER,
            f"no event of the rule is called `{name.name}`",
            name.span,
            notes=notes,
            help=[self._meant(name, seen) or did_you_mean(name.name, seen.some, name.span, otherwise)],
        )

    def _out_of_reach(self, name: Name) -> None:
        is_collected = name.name in self._collected().some
        self._findings.add(
            Code.UNKNOWN_IDENTIFIER,
            f"`{name.name}` is an event of a window, which is known only in "
            + ("its own conditions and in aggregates" if is_collected else "its own conditions"),
            name.span,
            related=[Related(self._accumulated[name.name].span, "asked for here")],
            help=[
                Help("put the condition right behind that event, as in `… where { … }`"),
                *([Help(f"speak of it in an aggregate, as in `max(end({name.name}))`")] if is_collected else []),
            ],
        )

    def _meant(self, name: Name, seen: Defined) -> Help | None:
        """The event that carries the name as its label or namespace, or the only one there is."""
        for event in find(self._rule.body, Event):
            label = pattern_label(event.pattern)
            if event.name is None and label is not None and label.prefix == name.name:
                colon = label.span.start + len(label.prefix) + 1
                message = f"`{label}` is read as a label in a namespace; write `{label.prefix}: {label.name}`"
                return Help(message, (Edit(Span(colon, colon), " "),))
        same = [e for e in find(self._rule.body, Event) if str(pattern_label(e.pattern)) == name.name]
        if len(same) == 1 and (same[0].name is None or same[0].name.name in seen.some):
            if same[0].name is not None:
                return _did_you_mean(name, same[0].name.name)
            if id(same[0]) not in {id(a.event) for a in find(self._rule.body, Accumulation)}:
                where = Span(same[0].span.start, same[0].span.start)
                return Help(f"write `{name.name}:` before the event", (Edit(where, f"{name.name}: "),))
        return _only_choice(name, seen)

    def _window(self, name: Name, seen: Defined) -> None:
        if name.name in seen.sure:
            return
        if name.name in seen.some:
            self._partial(name, seen)
            return
        what = "is a variable, not an event" if name.name in self._variables else "is no event or timer of this rule"
        if name.name in self._accumulated:
            what = "is asked for in a window itself"
        timers = [t.name.name for t in find(self._rule.body, Timer) if t.name is not None and t.name.name in seen.some]
        advice = self._meant(name, seen) or (_did_you_mean(name, timers[0]) if len(timers) == 1 else None)
        anchor = next(iter(seen.some), "e")
        self._findings.add(
            Code.NOT_A_WINDOW,
            f"`{name.name}` {what}, so it cannot be a window",
            name.span,
            notes=[f"the rule's events and timers are {listed(sorted(seen.some))}"] if seen.some else [],
            help=[
                advice
                or did_you_mean(
                    name.name, seen.some, name.span, f"define it, as in `{name.name}: extend({anchor}, 1h)`"
                )
            ],
        )

    def _cycles(self) -> None:
        """Timers whose anchors lead back to themselves, in any alternative."""
        for case in cases(self._rule.body):
            anchors = {t.name.name: t for t in case if isinstance(t, Timer) and t.name is not None}
            events = [m.name.name for m in case if isinstance(m, Event | Algebra) and m.name is not None]
            done: set[str] = set()
            for start in anchors:
                path: dict[str, None] = {}
                here = start
                while here in anchors and here not in path and here not in done:
                    path[here] = None
                    here = anchors[here].anchor.name
                if here in path:
                    cycle = list(path)[list(path).index(here) :]
                    self._tell_cycle(cycle, anchors[here], events)
                done |= path.keys()

    def _tell_cycle(self, cycle: list[str], timer: Timer, events: list[str]) -> None:
        edits = (Edit(timer.anchor.span, events[0]),) if events else ()
        which = "one of them" if len(cycle) > 1 else "it"
        self._findings.add(
            Code.TIMER_CYCLE,
            f"the timer `{cycle[0]}` is defined by itself: {' → '.join([*cycle, cycle[0]])}",
            timer.anchor.span,
            help=[Help(f"anchor {which} to an event" + (f", such as `{events[0]}`" if events else ""), edits)],
        )


def _no_events(body: Query) -> Iterator[tuple[str, str]]:
    """The identifiers of what happens and is no event, with what it is."""
    for query in find(body, Timer):
        if query.name is not None:
            yield query.name.name, "a timer"
    for detection in find(body, Algebra):
        if detection.name is not None:
            yield detection.name.name, "a combination of events"
    for event in find(body, Event):
        label = pattern_label(event.pattern)
        if event.name is not None and label is not None and label.prefix == "timer":
            yield event.name.name, "a timer"


def _only_choice(name: Name, seen: Defined) -> Help | None:
    """Where there is only one event, it must be the one that is meant."""
    if len(seen.some) != 1:
        return None
    return _did_you_mean(name, next(iter(seen.some)))


def _did_you_mean(name: Name, other: str) -> Help:
    return Help(f"did you mean `{other}`?", (Edit(name.span, other),))


def _merged(a: Defined, b: Defined) -> Defined:
    return Defined({**b.sure, **a.sure}, {**b.some, **a.some})


def _leaving_out(seen: Defined, name: Name | None) -> Defined:
    """What a timer may be anchored to: anything but itself."""
    own = name.name if name is not None else None
    return Defined({k: v for k, v in seen.sure.items() if k != own}, {k: v for k, v in seen.some.items() if k != own})
