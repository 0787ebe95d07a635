"""This module says what added rules need of the time before a change, and whether that is kept.

The relevance times of a rule say for how long each of its inputs matters. If what is kept of an input covers that, the
rule is exact from the change on: its answers are those that it would have given had it always been there. What others
derive for it is kept, if the same rules derived it before. Or it is derived anew, and then the inputs of these rules
have to reach back so much farther (R§6.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ephemera.algebra.attributes import EVENT, event_of, moved
from ephemera.algebra.nodes import Detection, Input, Match, Point
from ephemera.analysis.nodes import Relevance
from ephemera.base.lazy_dataclass import dataclass
from ephemera.base.time import describe
from ephemera.base.tree import find
from ephemera.engine.change.compared import Compared, told
from ephemera.engine.change.kept_tuples import KeptTuples, covers, longest_kept, reach_of, serves
from ephemera.kernels.lifetimes import FOREVER
from ephemera.physical.nodes import Reader


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that an added rule needs of the time before the change, and that is not there."""

    rule: str
    """The added rule, by its point."""
    label: str
    """What it lacks."""
    needs: int | None = None
    """How far back it needs that; None is any time."""
    kept: int = 0
    """How far back it is kept."""
    why: str | None = None
    """What else is the matter, if something is."""
    where: str = ""
    """The rule that reads it: the added one, or another that derives something for it."""
    is_lost: bool = False
    """Whether some of it has come, and is not known any more, though it may end after the change."""
    is_detected: bool = False
    """Whether it would have to be detected backwards."""

    @property
    def after(self) -> int | None:
        """How long after the change what lacks matters no longer; None is never."""
        return None if self.needs is None else max(self.needs - self.kept, 0)

    def text(self) -> str:
        """What lacks, for people."""
        needs = f"all of `{self.label}`" if self.needs is None else f"{describe(self.needs)} of `{self.label}`"
        if self.why is not None:
            return f"needs {needs}, but {self.why}"
        kept = f"{describe(self.kept)} {_is(self.kept)} kept" if self.kept else "nothing of it is kept"
        return f"needs {needs}, {kept}"


def _is(length: int) -> str:
    told = describe(length)
    return "is" if told.startswith("1 ") and told.count(" ") == 1 else "are"


@dataclass(slots=True)
class Needs:
    """What added rules need, and what lacks of it."""

    warm: set[str] = field(default_factory=set)
    """The rules that are run once over what is kept: the added ones, and those that derive anew what these read."""
    lacks: list[Lack] = field(default_factory=list)
    lengths: dict[str, int | None] = field(default_factory=dict)
    """For each added rule how far back it looks, through all that it reads; None is any time."""

    def of(self, rule: str) -> list[Lack]:
        """What an added rule lacks."""
        return [lack for lack in self.lacks if lack.rule == rule]

    def exact_after(self, rule: str) -> int | None:
        """How long after the change a rule is exact; None is never."""
        times = [lack.after for lack in self.of(rule)]
        known = [time for time in times if time is not None]
        return max(known, default=0) if len(known) == len(times) else None


class Standing:
    """How an engine stands when it is changed: here one that has run for so long that nothing else counts."""

    def is_blank(self, rule: str) -> bool:  # noqa: ARG002 - of plans alone nothing is known
        """Whether nothing has ended yet where a rule will run."""
        return False

    def may_use(self, rule: str, kept: KeptTuples) -> bool:  # noqa: ARG002
        """Whether a rule will run where some tuples are kept, or may take them from there."""
        return True

    def ahead(self, rule: str, other: str) -> int | None:  # noqa: ARG002
        """How far another rule is ahead of one that reads what it derives; None if that one has not begun."""
        return 0

    def age(self, kept: KeptTuples) -> int | None:  # noqa: ARG002
        """How far back some tuples are complete; None is as far as they are kept."""
        return None

    def trouble(self, query: Point) -> str | None:  # noqa: ARG002
        """Why what a query reads cannot be derived anew."""
        return None

    def lost(self, rule: str, query: Point) -> str | None:  # noqa: ARG002
        """Why some of what has come for a query, and ends after the change, is not known any more."""
        return None


@dataclass(slots=True)
class _Search:
    compared: Compared
    kept: Mapping[str | None, Sequence[KeptTuples]]
    """By label."""
    standing: Standing
    found: Needs = field(default_factory=Needs)
    relevance: dict[str, list[Relevance]] = field(default_factory=dict)
    cycles: frozenset[str] = frozenset()

    def added(self, rule: str) -> None:
        """What an added rule needs."""
        plan = self.compared.new.plan
        lengths: list[int | None] = [0]
        self._rule(rule, rule, 0, (), lengths)
        known = [length for length in lengths if length is not None]
        self.found.lengths[rule] = max(known) if len(known) == len(lengths) else None
        if any(True for _ in find(plan.points[rule].expression, Detection)) and not self.standing.is_blank(rule):
            label = plan.points[rule].label or "any"
            why = "expressions of the event algebra are not detected backwards"
            length = self.found.lengths[rule]
            self.found.lacks.append(Lack(rule, label, length, 0, why, rule, is_detected=True))

    def _rule(self, root: str, rule: str, back: int | None, path: tuple[str, ...], lengths: list[int | None]) -> None:
        """What a rule needs so that all is right that it derives of what ends so far back."""
        self.found.warm.add(rule)
        if rule in path or rule in self.cycles:
            back = None
        for one in self.relevance.get(rule, ()):
            query = self.compared.new.plan.points.get(one.input)
            if query is None or query.kind != "query" or query.label in self.compared.new.physical.calendars:
                continue
            reader = _reader(one, back)
            reach = reach_of(reader)
            lengths.append(None if reach is None else max(reach, 0))
            lost = self.standing.lost(rule, query)
            if lost is not None:
                self.found.lacks.append(Lack(root, query.label or "any", reach_of(reader), 0, lost, rule, is_lost=True))
            self._input(root, rule, query, reader, (*path, rule), lengths)

    def _input(  # noqa: PLR0913, PLR0917 - where it is in the search
        self, root: str, rule: str, query: Point, reader: Reader, path: tuple[str, ...], lengths: list[int | None]
    ) -> None:
        compared, label = self.compared, query.label or "any"
        needs = reach_of(reader)
        if needs is not None and needs <= 0 and not self._derivers(query):
            return  # nothing that has ended matters
        patterns = tuple(match.pattern for match in find(query.expression, Match))
        feeding = compared.after.feeding(query)
        longest = compared.new.facts.longest(query.name)
        serving = [
            k
            for k in self._candidates(query)
            if k.feeding == feeding and self.standing.may_use(rule, k) and serves(k, patterns)
        ]
        if any(self._has(k, reader, longest) for k in serving) or (
            self.standing.is_blank(rule) and not self._derivers(query)
        ):
            return
        rules = self._derivers(query)
        if (serving or not rules) and not self.standing.is_blank(rule):
            kept = max((_least(longest_kept(k.needed), self.standing.age(k)) for k in serving), default=0)
            kept = kept if needs is None else min(kept, needs)
            self.found.lacks.append(Lack(root, label, needs, kept, None, rule))
            return
        trouble = None if self.standing.is_blank(rule) else self.standing.trouble(query)
        if trouble is not None:
            self.found.lacks.append(Lack(root, label, needs, 0, trouble, rule))
        needs = None if needs is None else max(needs, 0)
        for deriving in rules:
            if deriving in path and not self.standing.is_blank(rule):
                self.found.lacks.append(Lack(root, label, None, 0, "it is derived from itself", rule))
            elif deriving not in path:
                ahead = self.standing.ahead(rule, deriving)
                self._rule(root, deriving, None if needs is None or ahead is None else needs + ahead, path, lengths)

    def _candidates(self, query: Point) -> Iterator[KeptTuples]:
        yield from self.kept.get(query.label, ())
        if query.label is not None:
            yield from self.kept.get(None, ())

    def _has(self, kept: KeptTuples, reader: Reader, longest: int | None) -> bool:
        age, needs = self.standing.age(kept), reach_of(reader)
        return covers(kept.needed, reader, longest) and (age is None or (needs is not None and needs <= age))

    def _derivers(self, query: Point) -> list[str]:
        """The rules that derive what a query reads."""
        points = self.compared.new.plan.points
        streams = [i.point for i in find(query.expression, Input)]
        return list(dict.fromkeys(i.point for s in streams for i in find(points[s].expression, Input)))


def _least(kept: int | None, age: int | None) -> int:
    known = [one for one in (kept, age) if one is not None]
    return max(min(known, default=FOREVER), 0)


def _reader(one: Relevance, back: int | None) -> Reader:
    """What a reader needs, if what it derives has to be right for what ended so far back."""
    if back is None or not one.minimal:
        return Reader((), one.length)
    times = ((moved(b.stamp, EVENT), b.time) for b in one.minimal if event_of(b.stamp))
    return Reader(tuple((s, t.bound - t.is_strict + back) for s, t in times if t is not None), one.length)


def needs_of(
    compared: Compared, kept: Iterable[KeptTuples], rules: Iterable[str] | None = None, standing: Standing | None = None
) -> Needs:
    """What rules need that are added, and what of it lacks."""
    by_label: dict[str | None, list[KeptTuples]] = {}
    for one in kept:
        by_label.setdefault(one.label, []).append(one)
    relevance: dict[str, list[Relevance]] = {}
    for fact in compared.new.facts.relevance:
        relevance.setdefault(fact.point, []).append(fact)
    cycles = frozenset(name for cycle in compared.new.plan.cycles for name in cycle)
    search = _Search(compared, by_label, standing or Standing(), Needs(), relevance, cycles)
    for rule in compared.added if rules is None else rules:
        search.added(rule)
    return search.found


def lack_texts(compared: Compared, needs: Needs) -> list[str]:
    """What lacks, rule by rule, each thing once."""
    found: dict[str, None] = {}
    for lack in needs.lacks:
        found[f"{told(compared.new.plan, lack.rule)} {lack.text()}"] = None
    return list(found)
