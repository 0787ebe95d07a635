"""This module measures what engines keep for every relation over longer streams, one by one and many at once."""

from __future__ import annotations

import pytest

from tests.engine.keeping import kept
from tests.strategies.lifetimes import FORMS, Form, Setting

pytestmark = pytest.mark.slow

MOST = 1.1


@pytest.mark.parametrize("at_begin", [False, True], ids=["at-end", "at-begin"])
@pytest.mark.parametrize(("count", "rate", "keys", "at_once"), [(400, 4, 3, 1), (1500, 30, 20, 100)])
@pytest.mark.parametrize("longest", [(6, 8), (12, 3)], ids=str)
def test_no_form_keeps_more_than_must_be(  # noqa: PLR0913 - a table
    count: int, rate: int, keys: int, at_once: int, longest: tuple[int, int], *, at_begin: bool
) -> None:
    told: list[tuple[float, float, Form]] = []
    for form in FORMS:
        setting = Setting(form, longest, at_begin)
        stream = setting.stream(4, count, rate, keys)
        found = kept(setting, stream, at_once)
        assert found.answers == setting.answers(stream), form
        assert found.missing == 0, form
        told.append((found.ratio, found.rows / max(found.needed, 1), form))
    for ratio, rows, form in sorted(told, key=lambda one: one[0], reverse=True):
        print(f"{form!s:28} {ratio:6.3f} of what must be kept, {rows:6.3f} rows")
    assert max(ratio for ratio, *_ in told) <= MOST
