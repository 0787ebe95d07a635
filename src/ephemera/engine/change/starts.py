"""This module says how added rules start: with what is kept, from now on only, or with a past from an archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ephemera.base.time import describe
from ephemera.engine.change.archive import (
    Found,
    PastMove,
    ReadOnce,
    Wanted,
    check_kept,
    exact_from,
    late_derivers,
    notes_of,
    wanted_by,
)
from ephemera.engine.change.compared import ChangeRefused, Compared, told
from ephemera.engine.change.move import Move
from ephemera.engine.change.moved_lanes import Start
from ephemera.engine.change.needs import Needs, lack_texts, needs_of
from ephemera.engine.change.standing import EngineStanding, lanes_of
from ephemera.kernels.history import FAR
from ephemera.rules.outcome import World

LookBack = Literal["refuse", "from-now", "available"]
"""What becomes of added rules that lack something; else they get it from an archive."""
WAYS_OUT = (
    'declare `RESERVE` for what is lacking before it is needed, or begin without it: look_back="from-now" has added '
    'rules see only what ends after the change, look_back="available" what is kept; or name files with what has come: '
    'look_back="archive/"'
)


def start_of(both: Compared, standing: EngineStanding, look_back: LookBack) -> tuple[Start, tuple[str, ...]]:
    """How added rules start with what is there, and what lacks."""
    engine = standing.engine
    running = set(lanes_of(both.new.physical))
    added = [rule for rule in both.added if rule in running]
    needs = needs_of(both, standing.kept, added, standing)
    lacking = [rule for rule in added if needs.of(rule)]
    if lacking and look_back == "refuse":
        told_all = "\n  ".join(lack_texts(both, needs))
        raise ChangeRefused(
            f"added rules need what is not there:\n  {told_all}\n{_when(both, needs, lacking)}{WAYS_OUT}"
        )
    since: dict[str, int] = {}
    exact: dict[str, int] = {}
    for rule in lacking:
        bound = standing.bound(rule)
        is_lost = any(lack.is_lost for lack in needs.of(rule))
        if look_back == "from-now" or is_lost:
            since[rule] = max(engine.sources.last, bound, standing.gap_of(rule)) if is_lost else bound
            check_early(both, rule)
        exact[rule] = _exact_from(rule, needs, standing, since.get(rule))
    warm = needs_of(both, standing.kept, [rule for rule in added if rule not in since], standing).warm
    return Start(frozenset(warm), since, exact), tuple(lack_texts(both, needs))


def _exact_from(rule: str, needs: Needs, standing: EngineStanding, since: int | None) -> int:
    """From when on a rule is exact that lacks something, or that only sees what ends after some time."""
    lacks = needs.of(rule)
    begins = [standing.bound(lack.where) for lack in lacks]
    if since is not None:
        length = needs.lengths[rule]
        return FAR if length is None else max([since, *begins]) + length
    afters = [lack.after for lack in lacks]
    known = [begin + after for begin, after in zip(begins, afters, strict=True) if after is not None]
    return max(known) if len(known) == len(lacks) else FAR


def _when(both: Compared, needs: Needs, lacking: Sequence[str]) -> str:
    found = []
    for rule in lacking:
        after = needs.exact_after(rule)
        if after is not None:
            found.append(f"{told(both.new.plan, rule)} would be exact from {describe(after)} after the change on\n")
    return "".join(dict.fromkeys(found))


def check_early(both: Compared, rule: str) -> None:
    """Refuses to have a rule begin later than others, if it reads events that are known from their begin on."""
    relevant = {one.input for one in both.new.facts.of(rule)}
    early = [
        str(point.label) for name in relevant if (point := both.new.plan.points.get(name)) is not None
        and point.label in both.new.plan.early
    ]  # fmt: skip
    if early:
        raise ChangeRefused(
            f"{told(both.new.plan, rule)} cannot begin later than others, since `{min(early)}` is known from its "
            "begin on"
        )


# ---- from an archive -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moves:
    """What makes a move, and one in which some rules get their past from an archive: here in one process."""

    plain: Callable[[EngineStanding, World, Start], Move] = Move
    with_past: Callable[[EngineStanding, World, Start, Wanted, Found], Move] = PastMove


def from_archive(  # noqa: PLR0913 - all of the change
    both: Compared,
    standing: EngineStanding,
    world: World,
    archive: ReadOnce,
    *,
    moves: Moves,
    as_numbers: bool,
) -> tuple[Move, tuple[str, ...]]:
    """A move in which added rules that lack something get it from an archive, and what is to be known of that."""
    running = set(lanes_of(both.new.physical))
    added = [rule for rule in both.added if rule in running]
    needs = needs_of(both, standing.kept, added, standing)
    lacking = [rule for rule in added if needs.of(rule)]
    if not lacking:
        start, lacks = start_of(both, standing, "refuse")
        return moves.plain(standing, world, start), lacks
    for rule in lacking:
        _check_archived(both, standing, needs, rule)
    wanted = wanted_by(standing, lacking)
    found = archive.read(both.new, wanted)
    check_kept(standing, wanted, found, archive.name, as_numbers=as_numbers)
    exact = dict(exact_from(standing, wanted, found))
    warm = needs_of(both, standing.kept, [rule for rule in added if rule not in lacking], standing).warm
    start = Start(frozenset(warm), {rule: standing.bound(rule) for rule in lacking}, exact)
    late = {rule: late_derivers(standing, rule) > standing.bound(rule) for rule in exact}
    more, begins = (
        "reads what is derived by a rule that is not exact yet",
        f"needs more than {archive.name} has, which begins later",
    )
    notes = [f"{told(both.new.plan, rule)} {more if late[rule] else begins}" for rule in exact]
    every = (*dict.fromkeys(notes), *notes_of(found, archive.name))
    return moves.with_past(standing, world, start, wanted, found), every


def _check_archived(both: Compared, standing: EngineStanding, needs: Needs, rule: str) -> None:
    """Refuses rules that an archive is of no use to."""
    check_early(both, rule)
    for lack in needs.of(rule):
        if lack.is_lost and not standing.is_elsewhere(lack.where, lack.label):
            raise ChangeRefused(f"{told(both.new.plan, rule)} {lack.text()}, and an archive does not help with that")
