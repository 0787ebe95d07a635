"""This module shows that the stories notice faults: each of these, planted alone in the oracle, makes one fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PARTS = 4
"""Stories are tried in so many parts, until one of them notices."""
STORIES = sorted(str(path) for path in (ROOT / "tests" / "stories").glob("*.md"))

FAULTS = {
    "the order of time goes by begins": (
        "terms/ordered_aggregates.py",
        "return (self.time.end, self.time.begin, key(self.value))",
        "return (self.time.begin, self.time.end, key(self.value))",
    ),
    "what happens together stands as it comes": (
        "terms/ordered_aggregates.py",
        "return (self.time.end, self.time.begin, key(self.value))",
        "return (self.time.end, self.time.begin)",
    ),
    "top ranks the least first": (
        "terms/ordered_aggregates.py",
        "key=lambda one: key(one.rank), reverse=True",
        "key=lambda one: key(one.rank)",
    ),
    "a selection shares nothing": (
        "rules/selections.py",
        "pattern_bindings(pattern).all - around",
        "pattern_bindings(pattern).all",
    ),
    "a selection shares all": (
        "rules/selections.py",
        "sorted(pattern_bindings(pattern).all - around)",
        "list[str]()",
    ),
    "conditions of a selection are of the chosen one alone": (
        "rules/selections.py",
        "return rebuild(pattern, renamed), tuple(rebuild(condition, renamed) for condition in conditions)",
        "return rebuild(pattern, renamed), ()",
    ),
    "before admits touching": ("semantics/conditions.py", "return i.end < j.begin", "return i.end <= j.begin"),
    "meets admits a gap": ("semantics/conditions.py", "return i.end == j.begin", "return i.end <= j.begin"),
    "overlaps without its last bound": (
        "semantics/conditions.py",
        "return i.begin < j.begin < i.end < j.end",
        "return i.begin < j.begin < i.end",
    ),
    "during touches": (
        "semantics/conditions.py",
        "return j.begin < i.begin and i.end < j.end",
        "return j.begin <= i.begin and i.end < j.end",
    ),
    "inverses not turned round": (
        "semantics/conditions.py",
        "return related(INVERSE[relation], j, i, parameters)",
        "return related(INVERSE[relation], i, j, parameters)",
    ),
    "within is strict": (
        "semantics/conditions.py",
        "return whole.end - whole.begin <= microseconds(duration)",
        "return whole.end - whole.begin < microseconds(duration)",
    ),
    "apart on one side only": (
        "semantics/conditions.py",
        "return j.begin - i.end >= gap or i.begin - j.end >= gap",
        "return j.begin - i.end >= gap",
    ),
    "what is far enough apart is too close": (
        "semantics/apart.py",
        "event.time.end - before.time.end >= apart.distance",
        "event.time.end - before.time.end > apart.distance",
    ),
    "bad events put others out": (
        "semantics/apart.py",
        "            close.append(CloseEvent(event, too_close(event, before, apart)))",
        "            close.append(CloseEvent(event, too_close(event, before, apart)))\n"
        "            last[event.term.label, values] = event",
    ),
    "shared values are only those that occur": (
        "semantics/algebra.py",
        "{key(NOWHERE): NOWHERE}",
        "{}",
    ),
    "metric ranges exclude their lower end": (
        "semantics/conditions.py",
        "else distance >= least",
        "else distance > least",
    ),
    "unknown holds": (
        "semantics/conditions.py",
        "return False if False in found else None if None in found else True",
        "return False not in found",
    ),
    "not unknown holds": (
        "semantics/conditions.py",
        "            return None if truth is None else not truth",
        "            return not truth",
    ),
    "a window excludes its begin": (
        "semantics/answers.py",
        "after = window.begin <= time.begin if begin",
        "after = window.begin < time.begin if begin",
    ),
    "an excluded end is included": (
        "semantics/answers.py",
        "(time.end <= window.end if end else time.end < window.end)",
        "time.end <= window.end",
    ),
    "from until touches": (
        "semantics/answers.py",
        "return a.end < time.begin and time.end < c.begin",
        "return a.end <= time.begin and time.end <= c.begin",
    ),
    "shorten lengthens": ("semantics/answers.py", "return Interval(b, e - d)", "return Interval(b, e + d)"),
    "from-start-backward ends at the end": (
        "semantics/answers.py",
        "return Interval(b - d, b)",
        "return Interval(b - d, e)",
    ),
    "windows share an instant": (
        "rules/periods.py",
        "Interval(begin, begin + self.length - 1)",
        "Interval(begin, begin + self.length)",
    ),
    "weeks begin on Thursdays": ("rules/periods.py", "_MONDAY if not every % WEEK else 0", "0"),
    "days are those of UTC": ("rules/periods.py", 'self.zone != "UTC" and not self.period % DAY', "False"),
    "an offset is lost": ("rules/periods.py", "origin + offset, zone", "origin, zone"),
    "a length may be less than none": ("terms/compute.py", "0 <= length <= longest", "length <= longest"),
    "a length has no limit": ("terms/compute.py", "0 <= length <= longest", "0 <= length"),
    "a timer of no length is lost": ("semantics/answers.py", "if time.begin > time.end:", "if time.begin >= time.end:"),
    "nested where is lost": (
        "semantics/answers.py",
        "return [[*choice, *conditions] for choice in disjuncts(inner)]",
        "return disjuncts(inner)",
    ),
    "an absence forgets its own conditions": (
        "semantics/answers.py",
        "return all(self._reader.holds(c, variables, trace) for c in accumulation.conditions)",
        "return True",
    ),
    "an optional collection is needed": (
        "semantics/answers.py",
        "for size in range(len(optional) + 1):",
        "for size in range(1):",
    ),
    "without is not tested again": (
        "semantics/answers.py",
        "and is_absent(partial.forbidden, variables)",
        "and True",
    ),
    "one round instead of a fixpoint": ("semantics/oracle.py", "while new is None or len(new):", "for _ in range(2):"),
    "having is not asked": ("semantics/oracle.py", "if not self._passes(rule, answer, group, scope):", "if False:"),
    "the clock runs past the input": (
        "semantics/oracle.py",
        "if number in self._clocked and answer.time.end > self._last:",
        "if False:",
    ),
    "count counts equal values": ("terms/construct.py", "return len({key(v) for v in values})", "return len(values)"),
    "a sum loses equal values": (
        "terms/construct.py",
        "            return _sum(values)",
        "            return _sum(list(set(values)))",
    ),
    "min is max": (
        "terms/construct.py",
        "_extreme(min(values, key=key, default=None)",
        "_extreme(max(values, key=key, default=None)",
    ),
    "true is 1": ("terms/values.py", "return (2,) if value else (1,)", "return (3, int(value))"),
    "null equals null": (
        "terms/values.py",
        "return None if a is None or b is None else key(a) == key(b)",
        "return key(a) == key(b)",
    ),
    "a child is matched twice": ("terms/match.py", "if place not in before:", "if True:"),
    "complete patterns let more in": ("terms/match.py", "if partial or len(places) == len(data):", "if True:"),
    "order does not count": (
        "terms/match.py",
        "first = before[-1] + 1 if ordered and before else 0",
        "first = 0",
    ),
    "a sequence touches": (
        "semantics/algebra.py",
        "return {a | b for a in s for b in t if end(a) < start(b)}",
        "return {a | b for a in s for b in t if end(a) <= start(b)}",
    ),
    "the oldest partner is taken": (
        "semantics/algebra.py",
        "result = max(before, key=start) | ak",
        "result = min(before, key=start) | ak",
    ),
    "equal stamps are late": ("semantics/arrival.py", "known - watermark - 1", "known - watermark"),
    "no watermark": ("semantics/arrival.py", "known - watermark - 1", "known - 1"),
    "one bound for all": ("semantics/arrival.py", "if event.term.label in s.carries", ""),
    "advance leaves its instant open": ("semantics/arrival.py", "known <= bounds[name]", "known < bounds[name]"),
    "a late event moves the bound back": (
        "semantics/arrival.py",
        "bounds[name] = max(bounds.get(name, reached), reached)",
        "bounds[name] = reached",
    ),
    "what is known at its begin is judged by its end": (
        "semantics/arrival.py",
        "event.time.begin if catalogue.arrives_at_begin(event.term.label) else event.time.end",
        "event.time.end",
    ),
    "nothing is idle": ("semantics/arrival.py", "if source.idle is None or", "if True or"),
    "silence is not waited for": (
        "semantics/arrival.py",
        "bounds[source.name] += now - max(last, heard + source.idle)",
        "bounds[source.name] += now - heard",
    ),
    "a source that was never heard waits for ever": (
        "semantics/arrival.py",
        "bounds[source.name] = min(bounds.values())",
        "pass",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_story_notices(fault: str, tmp_path: Path) -> None:
    name, right, wrong = FAULTS[fault]
    package = tmp_path / "ephemera"
    shutil.copytree(ROOT / "src" / "ephemera", package)  # with what is compiled: only what is changed is compiled anew
    module = package / name
    text = module.read_text(encoding="utf-8")
    assert text.count(right) >= 1, "the fault has no place any more"
    module.write_text(text.replace(right, wrong, 1), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    for engine, first in product(("oracle", "local"), range(_PARTS)):
        command = [sys.executable, "-m", "ephemera", "test", "--engine", engine, *STORIES[first::_PARTS]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
        if done.returncode:
            break
    assert done.returncode == 1, done.stdout + done.stderr[-2000:]
    assert "does not hold" in done.stderr
