"""Tables of Delta Lake are read over history, as they are or were, and live, version by version."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import ephemera
from ephemera import sources
from ephemera.base import installed
from ephemera.connect.systems.address import NoAnswer, WrongAddress
from ephemera.connect.systems.delta_source import OpenDelta
from ephemera.connect.systems.live import Arrived
from ephemera.connect.systems.registry import in_stretches, target_at
from tests.systems.delta_tables import ORDERS, add, mark_deleted, orders, rows, run, run_live, source, table_of

# ---- history ---------------------------------------------------------------------------------------------------


def test_a_table_is_a_history_and_so_is_any_of_its_versions(tmp_path: Path) -> None:
    add(tmp_path, 1, 3)
    where = add(tmp_path, 5)
    program = ephemera.compile(ORDERS)
    found = [{"event": "big", "time": f"2026-03-01T0{n}:00:00Z", "data": [f"o{n}", n]} for n in (3, 5)]
    assert program.run(sources.at(where, "order")) == found
    assert program.run(sources.at(f"{where}?version=0", "order")) == found[:1]
    assert program.run(sources.at(where.replace("delta:/", "delta:///"), "order")) == found


def test_a_history_goes_on_where_it_was_stopped_in_the_middle_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ephemera.connect.systems.delta_files.ROWS", 2)
    add(tmp_path, 1, 2, 3, 4, 5)
    given = source(add(tmp_path, 6))
    opened = given.open()
    read: list[list[int]] = []
    while (batch := opened.read()) is not None:
        read.append(table_of(batch)["qty"].to_pylist())
        position = json.loads(json.dumps(opened.position))
        opened.close()
        add(tmp_path, 9)  # which the version that is read does not have
        opened = given.open(position)
    assert read == [[1, 2], [3, 4], [5], [6]]


def test_columns_by_which_a_table_is_partitioned_are_columns(tmp_path: Path) -> None:
    given = orders(1, 2, 3, 4).append_column("day", pa.array([date(2026, 3, 1)] * 4))
    given = given.append_column("shop", pa.array(["a b", None, "é/%", "x=y"]))
    by = ["shop", "day", "time"]
    write_deltalake(tmp_path / "t", given.slice(0, 1), partition_by=by)
    opened = source(f"delta:{tmp_path}/t").open_live()
    assert [table_of(one).num_rows for one in opened.poll(0)] == [1]
    write_deltalake(tmp_path / "t", given.slice(1), mode="append")
    (later,) = _at_once(opened)
    assert table_of(later).sort_by("qty") == given.slice(1)
    assert source(f"delta:{tmp_path}/t").table().sort_by("qty") == given


def test_an_empty_table_has_columns(tmp_path: Path) -> None:
    where = add(tmp_path)
    assert ephemera.compile(ORDERS).run(sources.at(where, "order")) == []
    assert source(where).table().column_names == ["time", "id", "qty"]


def test_a_declared_table_may_be_one_of_delta_beside_its_program(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "stock", pa.table({"id": ["a"], "qty": [7]}))
    write_deltalake(tmp_path / "orders", pa.table({"time": [1], "id": ["a"]}))
    program = tmp_path / "p.eq"
    program.write_text(
        """EVENT order(id: string);
        TABLE stock(id: string, qty: int) FROM "delta:stock";
        STREAM s FROM "delta:orders" CARRIES order;
        WRITE found TO "delta:found";
        found(i, q) <- o: order(i), stock(i, q);"""
    )
    done = run(program, "--engine", "local")
    assert (done.exit_code, done.output) == (0, "")
    assert rows(tmp_path / "found") == [{"event": "found", "begin": 1.0, "end": 1.0, "i": "a", "q": 7}]


def test_rows_that_are_only_marked_as_deleted_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ephemera.connect.systems.delta_files.ROWS", 2)
    add(tmp_path, 1, 2, 3, 4, 5)
    where = add(tmp_path, 6, 7)
    opened = source(where).open_live()
    assert opened.poll(0)
    mark_deleted(tmp_path / "orders", 0, rows=(1, 3))
    assert source(where).table()["qty"].to_pylist() == [1, 3, 5, 6, 7]
    assert source(f"{where}?version=1").table()["qty"].to_pylist() == [1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(NoAnswer, match="version 3 of the table takes rows away"):
        _at_once(opened)


# ---- live ------------------------------------------------------------------------------------------------------


def _at_once(opened: OpenDelta) -> list[Arrived]:
    """What has come, without waiting for the next look."""
    opened._next = 0.0
    return opened.poll(0)


def test_versions_are_read_live_from_where_a_run_stopped(tmp_path: Path) -> None:
    for begin in (1, 3):
        done = run_live(tmp_path, add(tmp_path, begin, begin + 1))
        assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows(tmp_path / "out")] == ["o3"]  # that of 4 o'clock is not certain yet


def test_a_live_run_may_begin_behind_what_is_there(tmp_path: Path) -> None:
    given = source(f"{add(tmp_path, 3, 4)}?start=latest")
    opened = given.open_live()
    assert (opened.behind, opened.poll(0)) == (set(), [])
    add(tmp_path, 5)
    opened = given.open_live(opened.position)
    assert opened.behind
    (found,) = opened.poll(0)
    assert (table_of(found)["id"].to_pylist(), opened.behind) == (["o5"], set())


def test_what_is_there_is_read_in_pieces_and_gone_on_with_in_the_middle_of_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ephemera.connect.systems.delta_files.ROWS", 2)
    monkeypatch.setattr("ephemera.connect.systems.delta_source.ROWS", 2)
    given = source(add(tmp_path, 1, 2, 3))
    opened = given.open_live()
    read = [table_of(one)["qty"].to_pylist() for one in opened.poll(0)]
    add(tmp_path, 4, 5, 6)
    while opened.behind or read[-1][-1] < 6:
        opened = given.open_live(json.loads(json.dumps(opened.position)))
        read += [table_of(one)["qty"].to_pylist() for one in opened.poll(0)]
    assert [number for piece in read for number in piece] == [1, 2, 3, 4, 5, 6]
    assert given.open_live(opened.position).behind == set()


def test_compaction_adds_no_rows(tmp_path: Path) -> None:
    add(tmp_path, 3)
    assert run_live(tmp_path, add(tmp_path, 4)).exit_code == 0
    opened = source(f"delta:{tmp_path}/orders").open_live()
    assert opened.poll(0)
    DeltaTable(tmp_path / "orders").optimize.compact()
    done = run_live(tmp_path, add(tmp_path, 5))
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows(tmp_path / "out")] == ["o3", "o4"]
    (found,) = _at_once(opened)
    assert table_of(found)["id"].to_pylist() == ["o5"]


@pytest.mark.parametrize("change", ["DELETE", "UPDATE", "WRITE"])
def test_a_version_that_takes_rows_away_is_refused_or_passed_over_if_told_so(tmp_path: Path, change: str) -> None:
    where = add(tmp_path, 3, 4)
    assert run_live(tmp_path, where).exit_code == 0
    table = DeltaTable(tmp_path / "orders")
    if change == "DELETE":
        table.delete("qty = 4")
    elif change == "UPDATE":
        table.update({"qty": "9"}, predicate="qty = 4")
    else:
        write_deltalake(table, orders(8), mode="overwrite")
    add(tmp_path, 5, 6)
    done = run_live(tmp_path, where)
    assert (done.exit_code, done.stderr) == (
        3,
        f"`{where}`: version 1 of the table takes rows away or changes them ({change}), and what came of them cannot "
        "be taken back; add changes=skip to pass over such versions, or begin anew with another checkpoint\n",
    )
    done = run_live(tmp_path, f"{where}?changes=skip")  # which goes on from the checkpoint
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows(tmp_path / "out")] == ["o3", "o4", "o5"]
    done = run_live(tmp_path, where)  # behind the version
    assert done.exit_code == 0, done.output


def test_how_a_table_is_read_may_change_and_what_is_read_may_not(tmp_path: Path) -> None:
    where = f"delta:{tmp_path}/orders"
    names = [source(where + more).name for more in ("", "?every=5&changes=skip", "?version=3&every=5", "?version=3")]
    assert names == [where, where, f"{where}?version=3", f"{where}?version=3"]


def test_what_comes_before_a_version_that_is_refused_is_given(tmp_path: Path) -> None:
    opened = source(add(tmp_path, 1)).open_live()
    add(tmp_path, 2)
    DeltaTable(tmp_path / "orders").delete("qty = 1")
    (found,) = opened.poll(0)
    assert table_of(found)["qty"].to_pylist() == [1, 2]
    with pytest.raises(NoAnswer, match="version 2 of the table takes rows away"):
        opened.poll(0)


def test_a_column_that_is_added_is_read(tmp_path: Path) -> None:
    opened = source(add(tmp_path, 1)).open_live()
    assert opened.poll(0)
    more = orders(2).append_column("till", pa.array(["x"]))
    write_deltalake(tmp_path / "orders", more, mode="append", schema_mode="merge")
    (found,) = _at_once(opened)
    assert table_of(found) == more


def test_the_log_is_looked_at_as_often_as_told(tmp_path: Path) -> None:
    opened = source(f"{add(tmp_path, 1)}?every=1000").open_live()
    assert opened.poll(0)
    add(tmp_path, 2)
    assert opened.poll(0) == []


# ---- what is refused -------------------------------------------------------------------------------------------


def test_a_table_that_was_made_anew_is_not_gone_on_with(tmp_path: Path) -> None:
    given = source(add(tmp_path, 1))
    opened = given.open_live()
    assert opened.poll(0)
    shutil.rmtree(tmp_path / "orders")
    add(tmp_path, 1)
    with pytest.raises(NoAnswer, match="this is not the table that was read before"):
        given.open_live(opened.position)


def test_a_version_that_is_gone_from_the_log_is_told(tmp_path: Path) -> None:
    given = source(add(tmp_path, 1))
    opened = given.open_live()
    assert opened.poll(0)
    for number in (2, 3):
        add(tmp_path, number)
    DeltaTable(tmp_path / "orders").create_checkpoint()
    (tmp_path / "orders" / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(NoAnswer, match="version 1 is not in the log of the table any more"):
        given.open_live(opened.position).poll(0)


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    given = source(add(tmp_path, 1))
    for file in (tmp_path / "orders").glob("*.parquet"):
        file.unlink()
    with pytest.raises(NoAnswer, match="is gone, as VACUUM takes files"):
        given.table()


def test_a_file_that_is_damaged_is_told(tmp_path: Path) -> None:
    where = add(tmp_path, 1)
    for file in (tmp_path / "orders").glob("*.parquet"):
        file.write_bytes(b"nothing")
    done = run_live(tmp_path, where)
    assert (done.exit_code, done.stderr.startswith(f"`{where}`: "), len(done.stderr.splitlines())) == (3, True, 1)


def test_columns_that_are_called_otherwise_in_the_files_are_refused(tmp_path: Path) -> None:
    where = add(tmp_path, 1)
    log = tmp_path / "orders" / "_delta_log"
    data = next(json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines() if "metaData" in line)
    data["metaData"]["configuration"] = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
    schema = json.loads(data["metaData"]["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    data["metaData"]["schemaString"] = json.dumps(schema)
    protocol = {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    (log / f"{1:020}.json").write_text(json.dumps(protocol) + "\n" + json.dumps(data) + "\n")
    with pytest.raises(
        NoAnswer, match="the table uses `columnMapping`, which is not read here; copy it to one without"
    ):
        source(where).open()


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    where = f"delta:{tmp_path}/orders"
    told = f"`{where}`: there is no table of Delta Lake yet; it must be there, even if it is empty\n"
    done = run_live(tmp_path, where)
    assert (done.exit_code, done.stderr) == (3, told)
    done = run(tmp_path / "p.eq", "--engine", "local", "--input", where)
    assert (done.exit_code, done.stderr) == (3, told)
    add(tmp_path, 1)
    with pytest.raises(NoAnswer, match="the table has no version 7 yet; its last one is 0"):
        source(f"{where}?version=7").open()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (
            "delta:orders?verion=3",
            "there is no option `verion` here, its options are version, start, every, changes; did you mean `version`?",
        ),
        ("delta:orders?version=-1", "`version` is the number of a version, and this is `-1`"),
        ("delta:orders?start=lates", "`start` is earliest or latest, and this is `lates`; did you mean `latest`?"),
        ("delta:orders?changes=take", "`changes` is refuse or skip, and this is `take`"),
        ("delta:orders?every=never", "`every` is a number of seconds, and this is `never`"),
        ("delta:", "`delta:` is no address of a table; one is such as delta:shop/orders"),
        ("delta://host/orders", "`delta://host/orders` is no address of a table"),
        ("delta:s3://me:word@bucket/orders", "an address holds no password"),
        ("delta:orders?aws_secret=x", "an address holds no password"),
    ],
)
def test_a_wrong_address_is_told(where: str, said: str) -> None:
    with pytest.raises(WrongAddress) as told:
        sources.at(where)
    assert said in str(told.value)
    assert "word@" not in str(told.value)


def test_a_client_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda _name: None)
    told = "`delta:orders` needs deltalake, which is not installed: pip install 'ephemera-cep[delta]'"
    for make in (source, target_at):
        with pytest.raises(installed.NotInstalled) as error:
            make("delta:orders")
        assert str(error.value) == told


def test_what_is_only_for_live_runs_is_told(tmp_path: Path) -> None:
    with pytest.raises(WrongAddress, match="start=latest is for live runs; leave it out"):
        sources.at(f"{add(tmp_path, 1)}?start=latest").open()
    with pytest.raises(WrongAddress, match="start=latest is for live runs; leave it out"):
        in_stretches(f"{add(tmp_path, 1)}?start=latest").history()
