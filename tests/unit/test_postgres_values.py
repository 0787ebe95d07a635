"""Whatever a column of PostgreSQL holds is read without a change, or is a bad event; it never ends a run."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID

import pytest

import ephemera
from ephemera.connect.systems.postgres_values import array_of, table_of
from ephemera.formats.decode import Decoder, Noticed, Rows
from ephemera.formats.reading import Keys

LARGE = 2**53 + 1


@pytest.mark.parametrize(
    ("values", "read"),
    [
        ([IPv4Address("10.0.0.1"), None], ["10.0.0.1", None]),
        ([UUID(int=1)], ["00000000-0000-0000-0000-000000000001"]),
        ([1, "a", None, True, 2.5, {"a": 1}, [1]], [1, "a", None, True, 2.5, {"a": 1}, [1]]),
        ([{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 2}]),
        ([[1, "a"], [2]], ['[1,"a"]', [2]]),
        ([[1, "a"], [False, True, "b"]], ['[1,"a"]', '[false,true,"b"]']),
        ([Decimal(1), Decimal("1.5")], [1.0, 1.5]),
        ([Decimal(LARGE), Decimal("1.5")], [LARGE, 1.5]),
        ([Decimal(10) ** 20, Decimal(1)], [Decimal(10) ** 20, 1]),
        ([Decimal(10) ** 100, Decimal(1)], ["1" + "0" * 100, 1]),
        ([10**20, None], [Decimal(10) ** 20, None]),
        ([[Decimal(1), Decimal(2)]], [[1, 2]]),
        ([datetime(2026, 1, 1, tzinfo=UTC), "infinity"], [datetime(2026, 1, 1, tzinfo=UTC), "infinity"]),
        ([date(2026, 1, 1), "infinity"], [date(2026, 1, 1), "infinity"]),
        ([None, None], [None, None]),
        ([], []),
    ],
)
def test_values_stay_what_they_are(values: list[Any], read: list[Any]) -> None:
    found = array_of(values).to_pylist()
    assert found == read
    assert list(map(type, found)) == list(map(type, read))


def test_what_a_value_means_does_not_depend_on_its_neighbours() -> None:
    program = ephemera.compile("EVENT o(x: any); seen(x) <- e: o(x);")
    values = [1, "1", 2.5, True, "{}", 2**60, None]
    found = program.run(table_of([("o", k, v) for k, v in enumerate(values)], ["event", "time", "x"]))
    assert [None if row["x"] is None else json.loads(row["x"]) for row in found.to_pylist()] == values


def test_a_row_that_is_too_large_is_the_only_one_that_is_bad() -> None:
    compiled = ephemera.compile("EVENT o(x: int); seen(x) <- e: o(x);")._compiled
    rows = [("o", 1, Decimal(10) ** 20), ("o", 2, Decimal(7)), ("o", 3, Decimal("NaN")), ("o", 4, Decimal(10) ** 100)]
    found = Decoder(compiled, Noticed(Keys(compiled.physical))).decode(Rows(table_of(rows, ["event", "time", "x"])))
    assert [row for row, _ in found.bad] == [0, 2, 3]
