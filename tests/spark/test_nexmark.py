"""This module holds the programs of NEXMark to SQL, on Spark over a history."""

from __future__ import annotations

import pytest

from tests.nexmark.asking import QUERIES, asked_in_sql, events, options, program, rows

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_has_the_answers_of_sql_on_spark(query: str) -> None:
    found = program(query).run(events(query), engine="spark", **options(query))
    assert rows(found) == asked_in_sql(query)
