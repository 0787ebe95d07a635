"""This module runs the rules that wait for the same sources: a lane, with its bound, its histories and its steps.

In a step the bound moves on. What ended by then is released to the queries, each rule gives what happens by then, and
what it derives is released to the rules behind it, all in the order of the plan. Rules that need each other take turns
until nothing is new. At the end the histories forget what no rule can need any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ephemera.algebra.attributes import as_written
from ephemera.algebra.nodes import Table
from ephemera.algebra.state_names import StateNames
from ephemera.algebra.truth import Tester
from ephemera.engine.agenda import Agenda
from ephemera.engine.operators.alike_heads import AlikeHeads
from ephemera.engine.operators.detect import Detecting
from ephemera.engine.operators.detectors import Detectors
from ephemera.engine.operators.head import HeadBuilder, is_message
from ephemera.engine.operators.join import RuleJoin
from ephemera.engine.operators.join_constants import JoinConstants
from ephemera.engine.operators.later_rules import LaterRules
from ephemera.engine.operators.match import AbsoluteTimer, Matcher, Query, asked_for, with_events
from ephemera.engine.operators.step_events import StepEvents, Used, run_to_fixpoint
from ephemera.engine.operators.tuples import TupleBuilder
from ephemera.engine.reorder import Reordering
from ephemera.engine.time.event_time import Clock
from ephemera.engine.upkeep import Upkeep
from ephemera.kernels.columns import UNBOUND, Batch, Ints, column
from ephemera.kernels.event_columns import REFERENCE, Events, of_events
from ephemera.kernels.filter import Filter
from ephemera.kernels.history import FAR, History
from ephemera.kernels.tail import Row
from ephemera.physical.nodes import LanePlan, RulePlan
from ephemera.physical.plan import PhysicalPlan
from ephemera.rules.outcome import DeadLetter
from ephemera.rules.patterns import pattern_label
from ephemera.rules.scope import pattern_bindings
from ephemera.rules.series import series_of
from ephemera.terms.atoms import match_term
from ephemera.terms.events import Event
from ephemera.terms.match import distinct
from ephemera.terms.values import Term, Value


class Lane:
    """Rules that share a bound."""

    def __init__(
        self,
        plan: LanePlan,
        physical: PhysicalPlan,
        tables: Mapping[str, Sequence[Term]],
        clock: Clock,
        mine: Mapping[str, Callable[[Batch], Batch]] | None = None,
    ) -> None:
        """`mine` says for some queries which of their matches belong here."""
        self.plan = plan
        self._physical = physical
        self._plan = physical.plan
        self._members = physical.rewritten.members
        self._rows = tables
        self._clock = clock
        self._series = series_of(physical.plan.growth)
        self._tester = Tester(physical.catalogue, clock.calendars)
        self._filter = Filter(self._tester, with_events)
        self.histories = {name: History(one.stamps, one.reach, one.needed) for name, one in plan.histories.items()}
        self.queries = {name: self._query(name, (mine or {}).get(name)) for name in plan.queries}
        self.timers = [
            AbsoluteTimer(timer, self.histories[name], physical.catalogue.attributes)
            for name, timer in plan.timers.items()
        ]
        rules = [physical.rules[name] for name in plan.uses]
        has_algebra = any(rule.detections for rule in rules)
        self.detectors = Detectors(rules, self._tester, self.histories) if has_algebra else None
        self._labels = {name: query.label for name, query in plan.queries.items()}
        self._asked_labels = frozenset(self._labels.values())
        self.rules: dict[str, RuleJoin] = {}
        self.builders: dict[str, HeadBuilder | TupleBuilder] = {}
        self._parameters: dict[str, JoinConstants | None] = {}
        self._alike_heads: dict[str, AlikeHeads] = {}
        """For rules that stand for several."""
        for rule in rules:
            self._wire(rule)
        has_choice = any(len(rule.leaves) > 2 for rule in rules)
        self.reordering = Reordering(physical, self.rules, self.histories) if has_choice else None
        self._agenda = Agenda(plan, {rule.point: rule for rule in rules}, physical.calendars, self.histories)
        self.later = LaterRules(self.rules, plan.uses, self._agenda.visit)
        self.settled = 0
        """The tick at the end of the last step: whatever a rule was not visited for until then is nothing to it."""
        self._upkeep = Upkeep(self.histories, plan.queries, self._agenda.emptied)
        self._numbers = {name: number for number, name in enumerate(self.builders)}
        self._worked: dict[str, None] = {}
        """The rules whose heads were built since somebody asked for those without a value."""
        self._tables: dict[Table, Batch] = {}
        self._days = StepEvents(0, -1)
        """The days of calendars in this step: only queries by the name of a calendar see them."""
        self.bound = -FAR
        self.since = -FAR
        """What ended by then may not have come here, since the lane came later."""
        self.tick = 0
        self.references = 0
        self.derived_references = -1
        self.released = 0
        self.duplicates = 0
        self.unused = 0
        self.few: list[tuple[str, Event]] = []
        """Answers of this step that nobody reads, one by one."""
        self.used = Used(0, 0)
        """Which of the events from outside of this step some query has matched."""

    # ---- what there is -------------------------------------------------------------------------------------

    @property
    def state_names(self) -> StateNames:
        """What its rules and histories are called where they are stored."""
        return self._physical.rewritten.names

    @property
    def records(self) -> Mapping[str, Detecting]:
        """What is kept for algebra expressions."""
        return self.detectors.detecting if self.detectors is not None else {}

    def _query(self, name: str, mine: Callable[[Batch], Batch] | None) -> Query:
        """A query, with which of its matches are asked for here, where that is not all."""
        plan = self.plan.queries[name]
        asked = asked_for(self._physical.rewritten, name)
        both = mine or asked if mine is None or asked is None else lambda batch: mine(asked(batch))
        matcher = Matcher(plan.patterns, self._plan.catalogue, keeps_events=plan.keeps_events, only=both)
        return Query(matcher, self.histories[name])

    def _wire(self, rule: RulePlan) -> None:
        """A rule with its constants and heads."""
        alike = self._physical.rewritten.alike.get(rule.point)
        parameters = JoinConstants(rule, alike) if alike is not None else None
        self._parameters[rule.point] = parameters
        self.rules[rule.point] = RuleJoin(rule, self.histories.__getitem__, self._table, self._filter, parameters)
        if self._plan.points[rule.point].kind == "join":
            self.builders[rule.point] = TupleBuilder(rule.heads[rule.point], rule.events)
            return
        heads = list(rule.heads.values())
        if parameters is not None and AlikeHeads.can(heads):
            self._alike_heads[rule.point] = AlikeHeads(heads, rule.events, self._plan.catalogue, self._tester)
        for name, head in rule.heads.items():
            series = self._series.get(self._plan.points[name].rule or 0)
            self.builders[name] = HeadBuilder(head, rule.events, self._plan.catalogue, self._tester, series)

    def _table(self, table: Table) -> Batch:
        if table not in self._tables:
            label = str(pattern_label(table.pattern))
            names = self._plan.catalogue.tables[label].names
            rows = self._rows.get(label, ())
            found = distinct(s for row in rows for s in match_term(table.pattern, row, {}, names))
            variables = sorted(pattern_bindings(table.pattern).bound)
            columns = {v: column([s.get(v, UNBOUND) for s in found]) for v in variables}
            self._tables[table] = Batch(columns, len(found))
        return self._tables[table]

    def take_dead_letters(self) -> list[DeadLetter]:
        """The heads that had no value since the last time, each once."""
        found: dict[tuple[int, str], DeadLetter] = {}
        worked, self._worked = self._worked, {}
        for name in sorted(worked, key=self._numbers.__getitem__):
            number = self._plan.points[name].rule or 0
            for found_by, reason in self.builders[name].take_undefined():
                variables = self._as_written(name, found_by)
                which = (number, repr(sorted(variables.items(), key=lambda v: v[0])))
                found.setdefault(which, DeadLetter(number, variables, reason))
        return list(found.values())

    def _as_written(self, rule: str, variables: Mapping[str, Value]) -> Mapping[str, Value]:
        """The values of variables under the names that the author of a rule gave them."""
        together = self._physical.rewritten.alike.values()
        names: Mapping[str, str] = next((one.written[rule] for one in together if rule in one.written), {})
        return {as_written(names.get(name, name)): value for name, value in variables.items()}

    # ---- steps ---------------------------------------------------------------------------------------------

    def step(self, released: Sequence[Events], bound: int) -> dict[str, list[Events]]:
        """What the rules of the lane derive between the last bound and this one, from what was released by then."""
        if self.plan.days:
            self.tell_the_days(bound)
        pool = StepEvents(self.references, self.derived_references)
        given = sum(map(len, released))
        new = pool.add(released, derived=False)
        self.released += given
        self.duplicates += given - new
        self.used = Used(self.references, new)
        self.tick += 1
        self._tell_the_time(bound)
        if self.detectors is not None:
            self.detectors.start()
        self.few = []
        self._agenda.start(bound)
        self._agenda.came(released)
        derived: dict[str, list[Events]] = {}
        for place in self._agenda:
            members, is_cycle = self.plan.schedule[place]
            if is_cycle:
                self.take_turns(members, pool, bound, derived)
            else:
                for name in members:
                    self._member(name, pool, bound, derived)
        self.bound = bound
        self.unused += new - self.used.count
        self.references = pool.next_reference
        self.derived_references = min(pool.next_derived, self.derived_references)
        self.settled = self.tick
        self._upkeep.step(self.bound, self.tick)
        self.later.step(self.bound)
        if self.reordering is not None:
            self.reordering.step(self.released, bound)
        return derived

    def asks_for(self, label: str | None) -> bool:
        """Whether some query is for events of a label, or of any."""
        return label in self._asked_labels or None in self._asked_labels

    @property
    def kept(self) -> int:
        """How many events from outside some history still holds."""
        found = [batch[REFERENCE] for name in self.queries for batch in self.histories[name].batches()]
        if not found:
            return 0
        references = np.unique(np.concatenate(found))
        return int(np.count_nonzero(references >= 0))

    def take_turns(
        self, members: Sequence[str], pool: StepEvents, bound: int, derived: dict[str, list[Events]]
    ) -> None:
        growing = [s for n in members if (s := self._series.get(self._plan.points[n].rule or 0)) is not None]
        rules = [self.rules[name] for name in members if name in self.rules]
        for rule in rules:
            rule.take_turns(grows=not rule.plan.collects.isdisjoint(members))
        first = self.tick

        def turn() -> int:
            # What came in this step, and all rules of the cycle have seen, becomes few runs.
            seen = min((rule.seen for rule in rules), default=0)
            for history in (self.histories[name] for name in members if name in self.histories):
                history.compact(seen + 1, first)
            return sum(self._member(name, pool, bound, derived) for name in members)

        names = [m.name for name in members if name in self.rules for m in self._members(name)]

        def drop_derived() -> None:
            for name in names:
                derived.pop(name, None)

        read = {use.history for name in members for use in self.plan.uses.get(name, ())}
        owned = [h for n, h in self.histories.items() if n in members or (n in read and n not in self.plan.queries)]
        heads = [self.builders[name] for name in names]
        marks = [pool.mark(), *(h.mark() for h in owned), *(r.mark() for r in rules), *(h.mark() for h in heads)]
        marks += [self.detectors.mark()] if self.detectors is not None else []
        marks.append(drop_derived)
        run_to_fixpoint(turn, pool, growing, marks)

    def _member(self, name: str, pool: StepEvents, bound: int, derived: dict[str, list[Events]]) -> int:
        """One point's part of a step; how many new tuples or events it gave."""
        self.tick += 1
        query = self.queries.get(name)
        if query is not None:
            events = self._asked(name, pool)
            matched = query.step(events, self.tick) if events else None
            if matched is None:
                return 0
            self.used.mark(matched)
            self._agenda.matched(name, matched)
            self._upkeep.grown(name)
            return len(matched)
        try:
            return self._rule(name, pool, bound, derived)
        except Exception as error:
            error.add_note(f"in rule {self._told(name)}")
            raise

    def _told(self, name: str) -> str:
        """A rule, or those that it stands for, as people count them."""
        members = [m for m in self._members(name) if m.rule is not None]
        return ", ".join(f"{m.rule} ({m.label or 'any'})" for m in sorted(members, key=lambda m: m.rule or 0)) or name

    def _rule(self, name: str, pool: StepEvents, bound: int, derived: dict[str, list[Events]]) -> int:
        """A rule's part of a step; how many new events it gave."""
        rule = self.rules[name]
        rule.seen = max(rule.seen, self.settled)
        if self.detectors is not None and rule.plan.detections:
            span, events_of = (self.bound, bound), _Pools(pool, self._days)
            if not self.detectors.step(rule.plan, rule.seen, span, self.tick, events_of):
                is_plain = rule.plan.detections[0].detector is not None and len(rule.plan.leaves) == 1
                if is_plain and rule.pending.next is None:
                    return 0  # nothing is new of all that it reads, and nothing waits
        found = rule.step(self.tick, bound)
        self._agenda.waits(name, rule.pending.next)
        if found is None:
            return 0
        if isinstance(found, list):
            self._give_rows(name, found)
            return 0
        heads = self._alike_heads.get(name)
        made = heads.step(found) if heads is not None and len(found) else None
        if made is not None:
            members = self._members(name)
            derived.update((members[number].name, [events]) for number, events in made)
            read = [events for _, events in made if self.asks_for(events.label)]
            self._agenda.came(read)
            return pool.add(read)
        new = 0
        for member, batch in self.by_member(name, found):
            events = self.builders[member].step(batch)
            self._worked[member] = None
            if events:
                derived.setdefault(member, []).extend(events)
                if not is_message(self.builders[member].head):
                    new += pool.add(events)
                    self._agenda.came(events)
        return new

    def by_member(self, name: str, batch: Batch) -> list[tuple[str, Batch]]:
        """What a rule found, by the rules that it stands for."""
        parameters = self._parameters[name]
        if parameters is None:
            return [(name, batch)]
        members = self._members(name)
        return [(members[number].name, rows) for number, rows in parameters.by_member(batch)]

    def _give_rows(self, name: str, rows: Sequence[Row]) -> None:
        """A few answers that nobody reads."""
        parameters = self._parameters[name]
        members = self._members(name)
        for row in rows:
            for number in parameters.members_of(row) if parameters is not None else (0,):
                member = members[number]
                self.few.append((member.name, self.builders[member.name].simple(row)))

    def _asked(self, query: str, pool: StepEvents) -> list[Events]:
        label = self._labels[query]
        return (self._days if label in self._physical.calendars else pool).unread(query, label)

    def tell_the_days(self, bound: int) -> None:
        """The days of calendars since the last step."""
        self._days = StepEvents(0, self.derived_references)
        days = [day for name in self.plan.days for day in self._clock.days(name, self.bound, bound)]
        self._days.add(of_events(days, self._plan.catalogue.attributes))
        self.derived_references = self._days.next_derived

    def _tell_the_time(self, until: int) -> None:
        """The events of absolute timers since the last step."""
        for timer in self.timers:
            timer.step(self._clock.timers(timer.pattern, self.bound, until), self.tick)

    # ---- state ---------------------------------------------------------------------------------------------

    def checkpoint(self) -> dict[str, Any]:
        """Where it stands and what was counted, as JSON has it, by stored names; the rows are with the operators."""
        names = self.state_names
        return {
            "bound": self.bound,
            "tick": self.tick,
            "references": self.references,
            "derived_references": self.derived_references,
            "instances": self.detectors.count if self.detectors is not None else 0,
            "totals": [self.released, self.duplicates, self.unused],
            "histories": {names.histories[name]: history.counts for name, history in self.histories.items()},
            "rules": {names.rules[name]: rule.counts for name, rule in self.rules.items()},
            **({"since": self.since} if self.since > -FAR else {}),
            **({"pasts": pasts} if (pasts := self.later.counted(names)) else {}),
        }

    def expect(self, counted: Mapping[str, Any]) -> None:
        """What another kept beside the histories has its place, before the operators get their rows."""
        self.later.expect(counted.get("pasts", {}), self.state_names, self.empty_history)

    def every_history(self) -> Iterator[tuple[str, History]]:
        """The histories by name, and what rules have beside them."""
        yield from self.histories.items()
        yield from ((f"{source} in the past of {name}", past) for name, source, past in self.later.pasts())

    def empty_history(self, name: str) -> History:
        """One that keeps things as long as a history of the lane."""
        plan = self.plan.histories[name]
        return History(plan.stamps, plan.reach, plan.needed)

    def restore(self, counted: Mapping[str, Any]) -> None:
        """Stands where another stood, once the operators have its rows."""
        names = self.state_names
        self.bound, self.tick, self.references = counted["bound"], counted["tick"], counted["references"]
        self.derived_references, self.since = counted["derived_references"], counted.get("since", -FAR)
        self.released, self.duplicates, self.unused = counted["totals"]
        if self.detectors is not None:
            self.detectors.count_on(counted["instances"])
        for name, history in self.histories.items():
            history.count_on(*counted["histories"][names.histories[name]])
        for name, rule in self.rules.items():
            rule.count_on(*counted["rules"][names.rules[name]])
        self.settle()

    def number_from(self, tick: int, run: int) -> None:
        """Steps and runs are numbered from there on, behind those of a lane that this new one takes the place of."""
        self.tick = self.settled = tick
        for history in self.histories.values():
            history.next_number = run

    def settle(self) -> None:
        """Everything that is here has been seen; what came to be here otherwise than by steps is looked at."""
        self.settled = self.tick
        self._agenda.restart()
        self._upkeep.restart()
        self.later.note()

    def expire(self) -> None:
        """Drops what is dead where it stands."""
        for records in self.records.values():
            records.expire(self.bound)
        for rule in self.rules.values():
            rule.pending.expire(self.bound)
        self._upkeep.restart()
        self._upkeep.step(self.bound, self.tick)
        self._agenda.restart()


class _Pools(NamedTuple):
    """The events of a step, and the days of calendars."""

    pool: StepEvents
    days: StepEvents

    def find(self, references: Collection[int]) -> dict[int, Event]:
        return {**self.pool.find(references), **self.days.find(references)}

    def ranks(self, references: Ints) -> Ints | None:
        return self.pool.ranks(references)
