"""This module decides how a program is spread over partitions: by which variable each rule, and in how many levels.

A rule may be cut by a variable that all its events carry: events that can meet in it have equal values, and so the
same partition. Rules share a group, which is one engine in each partition, if they agree on how every query they read
is cut. What a rule derives stays where it is if the next rule wants it there; otherwise the next rule belongs to a
later level, with an exchange between them. A rule without such a variable has one partition for itself and all like it,
or is cut along time, if its answers are short: all that an answer depends on lies within its occurrence time, so that a
slice of time with a look-back of that length has all that its own answers need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice, product

from ephemera.algebra.attributes import is_constant, is_reference
from ephemera.algebra.nodes import Group as Grouping
from ephemera.algebra.nodes import Input, Point
from ephemera.algebra.parts import member_head, position_of
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import LATEST
from ephemera.base.tree import find
from ephemera.physical.nodes import RulePlan, WindowPlan
from ephemera.rewrite.optimize import Rewritten
from ephemera.rewrite.pushdown import blanks
from ephemera.syntax.nodes import Derive
from ephemera.terms.nodes import Var

WHOLE = "*"
"""The key of what may be anywhere: the whole event."""
MOST_CHOICES = 256
"""Rules that need each other are tried with no more combinations of keys."""


@dataclass(frozen=True, slots=True)
class Use:
    """An input of a rule: the query, and its own names of the rule's variables."""

    query: str
    label: str | None
    own: Mapping[str, str]
    sure: frozenset[str]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a rule runs: in which group, and cut by which variable; None is one partition for all."""

    group: int
    key: str | None
    because: str | None = None
    """Why it cannot be cut."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that run in one engine in each partition."""

    level: int
    rules: tuple[str, ...]
    cuts: Mapping[str, str | None]
    """For each query its variable whose value says where a match belongs; None is one place for all."""
    look_back: int | None = None
    """How long before the end of an answer all begins that it depends on, where that lets slices of time be places of
    their own; None if they cannot be."""
    judges: frozenset[str] = frozenset()
    """The types of which it says which events come too close to others; then it is before all others, and no rule is
    in it. All events of a type that have the same values are in one place."""
    reserves: frozenset[str] = frozenset()
    """The histories of whole events that are kept for rules that come later; then no rule is in it, either."""


@dataclass(frozen=True, slots=True)
class Placement:
    """How a program is spread."""

    groups: tuple[Group, ...]
    placed: Mapping[str, Placed]
    scattered: frozenset[str]
    """The labels of events that more than one partition may derive."""

    @property
    def judging(self) -> int | None:
        """The group that says which events come too close to others, if there is one."""
        return next((number for number, group in enumerate(self.groups) if group.judges), None)

    def reserving(self, reserved: Mapping[str, str], judged: Container[str], rewritten: Rewritten) -> Placement:
        """The same with a group for what is reserved, by the names of histories and labels, behind what derives it."""
        if not reserved:
            return self
        labels = {*reserved.values()}
        deriving = [
            self.groups[placed.group].level + 1
            for rule, placed in self.placed.items()
            if any(member.label in labels for member in rewritten.members(rule))
        ]
        level = max([int(any(label in judged for label in labels)), *deriving])
        cuts = dict.fromkeys(reserved, WHOLE)
        return replace(self, groups=(*self.groups, Group(level, (), cuts, reserves=frozenset(reserved))))

    @property
    def levels(self) -> int:
        return max((g.level for g in self.groups), default=-1) + 1


def stages(
    given: Rewritten,
    rules: Mapping[str, RulePlan],
    calendars: frozenset[str],
    clocked: frozenset[int],
    judged: frozenset[str] = frozenset(),
) -> Placement:
    """How the rules of a plan are spread over partitions; the days of calendars are everywhere.

    The clocked rules, by their numbers, answer by the clock. Types that are judged come to all rules by an exchange: by
    what rules are cut is not by what events of a type are told apart.
    """
    spread = _Spreading(given, rules, calendars, clocked).spread()
    if not judged:
        return spread
    later = [replace(group, level=group.level + 1) for group in spread.groups]
    return replace(spread, groups=(*later, Group(0, (), {}, judges=judged)))


@dataclass(slots=True)
class _Growing:
    """A group to which rules are added."""

    level: int
    rules: list[str] = field(default_factory=list)
    cuts: dict[str, str | None] = field(default_factory=dict)
    is_pinned: bool = False


class _Spreading:
    def __init__(
        self, given: Rewritten, rules: Mapping[str, RulePlan], calendars: frozenset[str], clocked: frozenset[int]
    ) -> None:
        self._days = calendars
        self._clocked = clocked
        self._given = given
        self._plan = given.plan
        self._physical = rules
        self._rules = self._in_order()
        self._uses = {p.name: self._uses_of(p) for p in self._rules}
        self._keys = {p.name: self._keys_of(p) for p in self._rules}
        self._members = {p.name: given.members(p.name) for p in self._rules}
        self._producers: dict[str, list[str]] = {}
        for p in self._rules:
            for member in self._members[p.name]:
                if member.label is not None:
                    self._producers.setdefault(member.label, []).append(p.name)
        self._look_backs = {p.name: self._look_back_of(p) for p in self._rules}
        self._votes = self._count()
        self._groups: list[_Growing] = []
        self._placed: dict[str, Placed] = {}

    def spread(self) -> Placement:
        cycles = {name: cycle for cycle in self._plan.cycles for name in cycle}
        for point in self._rules:
            if point.name not in self._placed:
                cycle = cycles.get(point.name)
                together = [p.name for p in self._rules if p.name in cycle] if cycle is not None else [point.name]
                self._place(together)
        return self._as_written()

    def _as_written(self) -> Placement:
        """The groups, and the rules in them, in the order of the plan."""
        places = {name: number for number, name in enumerate(self._plan.points)}
        groups: list[Group] = []
        for group in self._groups:
            rules = sorted(group.rules, key=places.__getitem__)
            queries = dict.fromkeys(use.query for name in rules for use in self._uses[name])
            cuts = {query: group.cuts[query] for query in queries}
            groups.append(Group(group.level, tuple(rules), cuts, self._along_time(rules)))
        order = sorted(range(len(groups)), key=lambda number: places[groups[number].rules[0]])
        numbers = {old: new for new, old in enumerate(order)}
        placed = {name: replace(self._placed[name], group=numbers[self._placed[name].group]) for name in self._placed}
        in_order = {name: placed[name] for name in sorted(placed, key=places.__getitem__)}
        return Placement(tuple(groups[old] for old in order), in_order, self._scattered())

    def _in_order(self) -> list[Point]:
        """The rules, each after those it reads, and else by what they mean: state is where it is for any writing."""
        plan, depths = self._plan, dict[str, int]()
        cycles = {name: cycle for cycle in plan.cycles for name in cycle}
        for name in plan.points:
            together = cycles.get(name, (name,))
            inputs = {i.point for member in together for i in find(plan.points[member].expression, Input)}
            depths[name] = 1 + max((depths[i] for i in inputs - set(together)), default=0)
        return sorted(self._given.rules, key=lambda p: (depths[p.name], self._given.names.rules[p.name]))

    # ---- what rules read and derive ------------------------------------------------------------------------

    def _uses_of(self, point: Point) -> list[Use]:
        uses: list[Use] = []
        for leaf in self._physical[point.name].inputs():
            if leaf.source in self._plan.points:
                own = {new: old for old, new in leaf.names.items()}
                names = {v: own.get(v, v) for v in leaf.variables}
                uses.append(Use(leaf.source, self._plan.points[leaf.source].label, names, leaf.sure))
        return uses

    def _keys_of(self, point: Point) -> list[str]:
        """The variables by which a rule may be cut; the whole event, if nothing meets in it."""
        uses, rule = self._uses[point.name], self._physical[point.name]
        if not uses or any(use.label in self._days for use in uses) or self._asks_the_clock(rule):
            return []
        keys = frozenset.intersection(*(use.sure for use in uses)) - blanks(point)  # nobody may have read those
        for one in rule.detections:
            keys &= frozenset(one.detection.shared)
        is_alone = len(uses) == 1 and not rule.detections and self._is_driven(rule)
        head = next(iter(rule.heads.values()))
        if isinstance(head, Grouping):  # what makes up one answer must be in one place
            keys &= frozenset(head.by)
            is_alone = is_alone and any(map(is_reference, head.by))
        columns = self._given.names.columns[point.name]
        named = {columns.get(key, key): key for key in keys}
        in_order = sorted(named, key=lambda name: (not is_constant(name), len(name), name))
        return [named[name] for name in in_order] + ([WHOLE] if is_alone else [])

    def _why_whole(self, point: Point) -> str:
        """Why a rule has one partition."""
        uses, rule = self._uses[point.name], self._physical[point.name]
        if self._keys[point.name]:
            return "it needs rules that need it, and they agree on no variable"
        if self._asks_the_clock(rule):
            return "it asks the clock, and may answer without any event"
        if any(use.label in self._days for use in uses):
            return "it reads a calendar"
        if not uses:
            return "it reads no event"
        if not frozenset.intersection(*(use.sure for use in uses)) - blanks(point):
            return "no variable stands in all its events"
        if rule.detections:
            return "its algebra expression shares no variable that stands in all its events"
        return "what makes up one answer need not agree on a variable"

    def _asks_the_clock(self, rule: RulePlan) -> bool:
        """Whether a rule asks the clock, and not for an event as well, in every answer, positive or collected."""
        asks = any(leaf.source not in self._plan.points for leaf in rule.inputs())
        return asks and not self._is_driven(rule) and not _always_collects(rule)

    def _is_driven(self, rule: RulePlan) -> bool:
        """Whether each answer is made of an event that is not of the clock."""
        return bool(rule.detections) or any(leaf.source in self._plan.points for leaf in rule.leaves)

    def _look_back_of(self, point: Point) -> int | None:
        """How long before the end of an answer of a rule all begins that it depends on; None if that is no help.

        What the clock tells depends on where time begins, and recursion is stopped by what one engine has counted.
        """
        is_clocked = any(member.rule in self._clocked for member in self._given.members(point.name))
        if is_clocked or any(point.name in cycle for cycle in self._plan.cycles):
            return None
        longest = self._given.facts.look_back(point.name)
        return longest if longest is not None and longest <= LATEST else None

    def _along_time(self, rules: Sequence[str]) -> int | None:
        """The look-back of rules that share a group."""
        known = [one for name in rules if (one := self._look_backs[name]) is not None]
        return max(known) if len(known) == len(rules) else None

    def _shown(self, rule: str, key: str) -> Iterator[tuple[str, int]]:
        for member in self._members[rule]:
            yield from shown_at(member, key)

    def _count(self) -> Counter[tuple[str, int]]:
        """How many rules could use each attribute as their key."""
        votes: Counter[tuple[str, int]] = Counter()
        for name, keys in self._keys.items():
            for key in keys:
                for use in self._uses[name]:
                    place = position_of(self._plan, use.query, use.own.get(key, key)) if key != WHOLE else None
                    if place is not None:
                        votes[place] += 1
        return votes

    # ---- placing -------------------------------------------------------------------------------------------

    def _place(self, names: Sequence[str]) -> None:
        """Puts rules that belong together where they can run earliest, beside others if possible."""
        choices = [[*self._keys[name], None] if len(names) == 1 else [*self._keys[name]] for name in names]
        best: tuple[tuple[int, ...], int, tuple[str | None, ...]] | None = None
        for keys in islice(product(*choices), MOST_CHOICES):
            for number in range(len(self._groups) + 1):
                rank = self._rank(number, dict(zip(names, keys, strict=True)))
                if rank is not None and (best is None or rank > best[0]):
                    best = (rank, number, keys)
        if best is None:
            self._pin(names)
            return
        _, number, chosen = best
        self._add(number, dict(zip(names, chosen, strict=True)))

    def _pin(self, names: Sequence[str]) -> None:
        """Rules that need each other and cannot be cut run in one place."""
        keys = dict.fromkeys(names, None)
        fitting = [n for n in range(len(self._groups) + 1) if self._rank(n, keys) is not None]
        self._add(fitting[0], keys)

    def _rank(self, number: int, keys: Mapping[str, str | None]) -> tuple[int, ...] | None:
        """How good a group and keys are for some rules; None if they cannot run there. The greater the better."""
        is_new = number == len(self._groups)
        if not is_new and self._is_pinned(number) != (None in keys.values()):
            return None  # by the clock, what has one place would be derived wherever the others are
        if not is_new and None in keys.values() and not self._are_cut_alike(self._groups[number].rules, [*keys]):
            return None  # those that can be cut along time would have one place, with the others
        settled = {} if is_new else self._groups[number].cuts
        cuts: dict[str, str | None] = {}
        level = 0 if is_new else self._groups[number].level
        for name, key in keys.items():
            for use in self._uses[name]:
                own = use.own.get(key, key) if key is not None and key != WHOLE else key
                if cuts.setdefault(use.query, settled.get(use.query, own)) != own:
                    return None
                for producer in self._read_from(use):
                    if producer not in keys and producer not in self._placed:
                        continue  # its events have another shape, so nothing of it is read
                    stays = self._stays(producer, use, own, number, keys)
                    needed = self._level(producer, level, keys) + (0 if stays else 1)
                    if needed > level and not is_new:
                        return None
                    level = max(level, needed)
                    if not stays and producer in keys:
                        return None
        is_cut = sum(key is not None for key in keys.values())
        score = sum(self._score(name, key) for name, key in keys.items() if key is not None)
        shown = sum(any(self._shown(name, key)) for name, key in keys.items() if key is not None)
        return (is_cut, -level, int(not is_new), score, shown)

    def _are_cut_alike(self, rules: Sequence[str], others: Sequence[str]) -> bool:
        """Whether all of some rules and of others can be cut along time, or none of either can all be."""
        return (self._along_time(rules) is None) == (self._along_time(others) is None)

    def _is_pinned(self, number: int) -> bool:
        return self._groups[number].is_pinned

    def _level(self, producer: str, level: int, keys: Mapping[str, str | None]) -> int:
        return level if producer in keys else self._groups[self._placed[producer].group].level

    def _read_from(self, use: Use) -> list[str]:
        if use.label is None:
            return list(dict.fromkeys(name for names in self._producers.values() for name in names))
        return self._producers.get(use.label, [])

    def _stays(self, producer: str, use: Use, own: str | None, number: int, keys: Mapping[str, str | None]) -> bool:
        """Whether what a rule derives is already where a reader wants it."""
        if producer in keys:
            key: str | None = keys[producer]
        elif producer in self._placed and self._placed[producer].group == number:
            key = self._placed[producer].key
        else:
            return False
        if own is None or key is None:
            return own is None and key is None
        if own == WHOLE:
            return True
        place = position_of(self._plan, use.query, own)
        labels = {m.label for m in self._members[producer]}
        return place is not None and labels == {place[0]} and place in set(self._shown(producer, key))

    def _score(self, name: str, key: str) -> int:
        if key == WHOLE:
            return -1
        places = [position_of(self._plan, use.query, use.own.get(key, key)) for use in self._uses[name]]
        return sum(self._votes[p] for p in places if p is not None) + sum(
            self._votes[p] for p in self._shown(name, key)
        )

    def _add(self, number: int, keys: Mapping[str, str | None]) -> None:
        if number == len(self._groups):
            rank = self._rank(number, keys)
            self._groups.append(_Growing(-rank[1] if rank is not None else 0))
        group = self._groups[number]
        for name, key in keys.items():
            group.rules.append(name)
            because = self._why_whole(self._plan.points[name]) if key is None else None
            self._placed[name] = Placed(number, key, because)
            group.is_pinned = group.is_pinned or key is None
            for use in self._uses[name]:
                group.cuts[use.query] = use.own.get(key, key) if key is not None and key != WHOLE else key

    def _scattered(self) -> frozenset[str]:
        """The labels whose events may be derived twice, in different partitions."""
        found: set[str] = set()
        shown: dict[tuple[str, str], set[int]] = {}
        """For each rule, and each label that it derives, where that shows what the rule is cut by."""
        for rule, placed in self._placed.items():
            for label, k in self._shown(rule, placed.key) if placed.key is not None else ():
                shown.setdefault((rule, label), set()).add(k)
        for label, producers in self._producers.items():
            if self._plan.points[producers[0]].kind == "join":  # what is stored twice is only found twice
                continue
            if len({self._placed[p].group for p in producers}) > 1:
                found.add(label)
                continue
            is_whole = [self._placed[p].key is None for p in producers]
            if all(is_whole):
                continue
            common = set[int].intersection(*(shown.get((p, label), set()) for p in producers))
            if any(is_whole) or not common:
                found.add(label)
        return frozenset(found)


def _always_collects(rule: RulePlan) -> bool:
    """Whether nothing is answered unless some window holds an event."""
    branches = [branch for branches in rule.attempts for branch in branches]
    return bool(branches) and all(
        any(isinstance(step, WindowPlan) and step.kind != "absence" for step in branch) for branch in branches
    )


def shown_at(rule: Point, key: str) -> Iterator[tuple[str, int]]:
    """Where what a rule derives shows its key."""
    head = member_head(rule).head
    if isinstance(head, Derive) and rule.label is not None:
        for k, argument in enumerate(head.arguments):
            if argument == Var(key):
                yield rule.label, k
