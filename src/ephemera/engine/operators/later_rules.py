"""This module knows the rules of a lane that began later than others, until what is older matters to them no longer.

Such a rule reads the histories only behind some time; of the time before it may have a past of its own
(`engine/change/archive.py`). When nothing that ended by then can matter to it any more, it is like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ephemera.algebra.state_names import StateNames
from ephemera.engine.operators.join import RuleJoin
from ephemera.kernels.history import History
from ephemera.physical.nodes import HistoryUse, Reader


class LaterRules:
    """Those of some rules that began later."""

    def __init__(
        self,
        rules: Mapping[str, RuleJoin],
        uses: Mapping[str, Sequence[HistoryUse]],
        visit: Callable[[Iterable[str]], None],
    ) -> None:
        """`visit` is told which of them have a past of their own, and so are to be visited in every step."""
        self._rules, self._uses, self._visit = rules, uses, visit
        self._lasts: dict[str, int | None] = {}
        """For each the last bound at which it matters; None is any."""

    def note(self) -> None:
        """Looks which rules these are."""
        began = ((name, rule.since) for name, rule in self._rules.items())
        self._lasts = {name: _lasts(since, self._uses[name]) for name, since in began if since is not None}
        self._visit(name for name in self._lasts if self._rules[name].pasts)

    def step(self, bound: int) -> None:
        """The bound has come so far."""
        if not self._lasts:
            return
        is_over = [name for name, lasts in self._lasts.items() if lasts is not None and bound > lasts]
        for name in is_over:
            self._rules[name].count_since(None)
        if is_over:
            self.note()
        for _, _, past in self.pasts():
            past.expire(bound)

    def pasts(self) -> Iterator[tuple[str, str, History]]:
        """What rules have of the time before, each with the rule and the history in whose place it counts."""
        for name in self._lasts:
            for source, past in self._rules[name].pasts.items():
                yield name, source, past

    # ---- state ---------------------------------------------------------------------------------------------

    def counted(self, names: StateNames) -> dict[str, dict[str, list[int]]]:
        """What was counted of pasts, by stored names."""
        found: dict[str, dict[str, list[int]]] = {}
        for name, source, past in self.pasts():
            found.setdefault(names.rules[name], {})[names.histories[source]] = past.counts
        return found

    def expect(self, counted: Mapping[str, Any], names: StateNames, empty: Callable[[str], History]) -> None:
        """What was counted so has its place, for its rows to be restored."""
        for name, rule in self._rules.items() if counted else ():
            own: Mapping[str, list[int]] = counted.get(names.rules[name], {})
            for source in {leaf.source for leaf in rule.plan.inputs()} if own else ():
                if names.histories[source] in own:
                    rule.pasts[source] = empty(source)
                    rule.pasts[source].count_on(*own[names.histories[source]])


def _lasts(since: int, uses: Sequence[HistoryUse]) -> int | None:
    """The last bound at which it matters to a rule that it only sees what ends after some time; None is any."""
    lasts = since
    for use in uses:
        for reader in use.needed if use.needed is not None else (Reader(()),):
            reach = min((time for _, time in reader.times), default=None)
            if reach is None:
                return None
            lasts = max(lasts, since + reach)
    return lasts
