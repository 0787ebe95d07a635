"""A table of Delta Lake holds each answer of a run once, in typed columns, and gives it back as it was."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ephemera
from ephemera import sinks, sources
from ephemera.connect.systems.address import NoAnswer, WrongAddress
from ephemera.connect.systems.delta_sink import OpenDeltaTarget
from ephemera.connect.systems.live import OpenTarget
from ephemera.connect.systems.registry import target_at
from tests.systems.delta_tables import ORDERS, add, kinds, rows, run, run_live

STAMP = "timestamp[us, tz=UTC]"

# ---- columns ---------------------------------------------------------------------------------------------------


def test_columns_have_the_types_that_the_rules_let_expect(tmp_path: Path) -> None:
    assert run_live(tmp_path, add(tmp_path, 3, 4)).exit_code == 0
    at = datetime(2026, 3, 1, 3, tzinfo=UTC)
    assert rows(tmp_path / "out") == [{"event": "big", "begin": at, "end": at, "id": "o3", "qty": 3}]
    assert kinds(tmp_path / "out") == {"event": "string", "begin": STAMP, "end": STAMP, "id": "string", "qty": "int64"}


def test_several_types_of_answers_share_a_table_with_the_columns_of_all(tmp_path: Path) -> None:
    program = """
        EVENT order(id: string, end: int, more: any, at: time);
        big(id, at) <- o: order(id, q, more, at), q > 2;
        told(id, more, end, id) <- o: order(id, end, more, at);
        DETECT nested { id { var I }, line { qty { var Q }, what { var M } } }
        ON event o: order(var I, var Q, var M, var A) END
    """
    events = [
        {"event": "order", "time": 1.5, "data": ["a", 3, "é", 4]},
        {"event": "order", "time": 2, "data": ["b", 1, None, 4]},
    ]
    ephemera.compile(program).run(sources.Memory(events), sink=sinks.at(f"delta:{tmp_path}/out"))
    found = [{k: v for k, v in row.items() if v is not None} for row in rows(tmp_path / "out")]
    first, second = {"begin": 1.5, "end": 1.5}, {"begin": 2.0, "end": 2.0}
    nested = '{"id": "%s", "line": {"qty": %d, "what": %s}}'
    assert found == [
        {"event": "big", **first, "id": "a", "at": 4},
        {"event": "nested", **first, "data": nested % ("a", 3, '"é"')},
        {"event": "told", **first, "value1": "a", "more": '"é"', "value3": 3, "value4": "a"},  # names that are not free
        {"event": "nested", **second, "data": nested % ("b", 1, "null")},
        {"event": "told", **second, "value1": "b", "value3": 1, "value4": "b"},
    ]
    texts, numbers = ("event", "id", "more", "value1", "value4", "data"), ("at", "value3")
    assert kinds(tmp_path / "out") == {
        **dict.fromkeys(texts, "string"),
        **dict.fromkeys(numbers, "int64"),
        **dict.fromkeys(("begin", "end"), "double"),
    }
    back = ephemera.compile("EVENT big(id: string, at: time); again(id, at) <- b: big(id, at);")
    assert back.run(sources.at(f"delta:{tmp_path}/out")) == [{"event": "again", "time": 1.5, "data": ["a", 4]}]


def test_only_what_is_written_there_has_columns(tmp_path: Path) -> None:
    program = tmp_path / "p.eq"
    program.write_text(
        """EVENT order(id: string, qty: int);
        STREAM s FROM "delta:orders" CARRIES order;
        WRITE big TO "delta:out/big";
        WRITE small, big TO "delta:out/all";
        big(qty) <- o: order(id, qty), qty > 2;
        small(id) <- o: order(id, qty), qty < 3;"""
    )
    add(tmp_path, 2, 3)
    assert run(program, "--engine", "local").exit_code == 0
    assert list(kinds(tmp_path / "out" / "big")) == ["event", "begin", "end", "qty"]
    assert sorted(kinds(tmp_path / "out" / "all")) == ["begin", "end", "event", "id", "qty"]
    assert [(row["event"], row["id"], row["qty"]) for row in rows(tmp_path / "out" / "all")] == [
        ("small", "o2", None),
        ("big", None, 3),
    ]


def test_a_column_of_another_type_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "out", pa.table({"event": ["big"], "qty": pa.array([1], pa.int32())}))
    done = run_live(tmp_path, add(tmp_path, 3, 4))
    assert done.exit_code == 3
    assert "has a column `qty` of type int32, and the answers have `qty` of type int64; name another" in done.stderr
    assert DeltaTable(tmp_path / "out").version() == 0


def test_a_column_of_doubles_takes_whole_numbers_as_long_as_it_holds_them(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "out", pa.table({"event": ["big"], "qty": [0.5]}))
    program, target = ephemera.compile("EVENT a(qty: int); big(qty) <- i: a(qty);"), sinks.at(f"delta:{tmp_path}/out")
    program.run([{"event": "a", "time": 1, "data": [3]}], sink=target)
    with pytest.raises(NoAnswer, match="has a column `qty` of type double"):
        program.run([{"event": "a", "time": 1, "data": [2**53 + 1]}], sink=target)
    assert sorted(pa.table(DeltaTable(tmp_path / "out").scan())["qty"].to_pylist()) == [0.5, 3.0]


def test_a_target_has_no_options(tmp_path: Path) -> None:
    with pytest.raises(WrongAddress, match="there is no option `table` here, it has none"):
        target_at(f"delta:{tmp_path}/out?table=big")


# ---- once ------------------------------------------------------------------------------------------------------


def load(target: OpenTarget, *values: str, column: str = "id") -> bytes:
    """Some answers as a target encodes them, in several pieces."""

    class Kept:
        def __init__(self) -> None:
            self.found = b""

        def open(self) -> Kept:
            return self

        def write(self, answers: Any) -> None:
            self.found += target.encode(answers)

        def commit(self) -> None:
            pass

        abort = commit

    kept = Kept()
    for k, one in enumerate(values):
        program = ephemera.compile(f"EVENT a({column}: string); big({column}) <- i: a({column});")
        program.run([{"event": "a", "time": k, "data": [one]}], sink=kept)
    return kept.found


def test_a_commit_counts_once_however_often_it_is_put(tmp_path: Path) -> None:
    target = target_at(f"delta:{tmp_path}/out")
    for number, ids in ((1, "ab"), (1, "c"), (2, "a"), (1, "d")):
        opened = target.open_target("run-0")
        opened.put(load(opened, *ids), number)
        opened.close()
    other = target.open_target("run-1")
    other.put(load(other, "e"), 1)
    assert [row["id"] for row in rows(tmp_path / "out")] == ["a", "a", "e", "b"]
    table = DeltaTable(tmp_path / "out")
    assert (table.version(), table.transaction_version("run-0"), table.transaction_version("run-1")) == (2, 2, 1)


class Crash(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_that_ends_between_checkpoint_and_table_goes_on_without_loss_or_repetition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    put = OpenDeltaTarget.put

    def crash(self: OpenDeltaTarget, data: bytes, number: int) -> None:
        if when == "after":
            put(self, data, number)
        raise Crash

    assert run_live(tmp_path, add(tmp_path, 3, 4)).exit_code == 0
    where = add(tmp_path, 5, 6)
    with monkeypatch.context() as patched:
        patched.setattr(OpenDeltaTarget, "put", crash)
        with pytest.raises(Crash):
            run_live(tmp_path, where)
    assert [row["id"] for row in rows(tmp_path / "out")] == (["o3"] if when == "before" else ["o3", "o4", "o5"])
    for number in (7, 8):
        add(tmp_path, number)
        done = run_live(tmp_path, where)
        assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows(tmp_path / "out")] == ["o3", "o4", "o5", "o6", "o7"]


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "ephemera", "run", folder / "p.eq", "--mode", "stream", "--engine", "local"]
    words += ["--input", f"delta:{folder}/orders?every=0.01", "--checkpoint", folder / "state"]
    words += ["--output", f"delta:{folder}/out", *more]
    return subprocess.Popen([str(word) for word in words], stderr=subprocess.PIPE)


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_moment_is_whole_when_it_goes_on(tmp_path: Path) -> None:
    chance = random.Random(29)
    (tmp_path / "p.eq").write_text(ORDERS.replace("1 sec", "0 sec"))
    count = 0

    def feed() -> None:
        nonlocal count
        times = pa.array(range(count, count + 20), pa.int64())
        ids = pa.array([f"o{n}" for n in times.to_pylist()])
        rows = pa.table({"time": times, "id": ids, "qty": pa.repeat(pa.scalar(3), 20)})
        write_deltalake(tmp_path / "orders", rows, mode="append")
        count += 20

    feed()
    for _ in range(5):
        running = start(tmp_path, "--trigger", "0.02 sec")
        before, until = _version(tmp_path / "out"), time.monotonic() + 60
        while _version(tmp_path / "out") <= before:
            feed()
            assert running.poll() is None, (running.communicate()[1] or b"").decode()
            assert time.monotonic() < until, "there is no commit"
        time.sleep(chance.uniform(0, 0.1))  # which steps of a commit it falls into is for chance to say
        running.send_signal(signal.SIGKILL)
        with running:  # which closes its pipes
            pass
    feed()
    whole = start(tmp_path, "--trigger", "once")
    _, told = whole.communicate(timeout=120)
    assert whole.returncode == 0, told.decode()
    found = [row["begin"] for row in rows(tmp_path / "out")]
    assert found == [float(n) for n in range(len(found))]
    assert len(found) >= count - 1  # the last is not certain yet


def _version(place: Path) -> int:
    return DeltaTable(place).version() if DeltaTable.is_deltatable(str(place)) else -1


# ---- with others -----------------------------------------------------------------------------------------------


def test_others_may_write_to_the_table_at_the_same_time(tmp_path: Path) -> None:
    target = target_at(f"delta:{tmp_path}/out")
    opened = [target.open_target(name) for name in ("one", "two")]  # when there was no table
    for number in (1, 2, 3):
        for one in opened:
            one.put(load(opened[0], f"{number}"), number)
        more = pa.table({"event": ["other"], "begin": [9.0], "end": [9.0], f"column{number}": [1]})
        write_deltalake(tmp_path / "out", more, mode="append", schema_mode="merge")
    assert [row["id"] for row in rows(tmp_path / "out")] == [*"112233", None, None, None]


def test_a_conflict_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = target_at(f"delta:{tmp_path}/out").open_target("run")
    assert isinstance(opened, OpenDeltaTarget)
    data = load(opened, "a")
    opened.put(data, 1)
    opened.put(data, 1)  # so that it has seen the table
    said = CommitProperties(app_transactions=[Transaction("run", 2)])
    other = pa.table({"event": ["other"]})
    write_deltalake(tmp_path / "out", other, mode="append", schema_mode="merge", commit_properties=said)
    monkeypatch.setattr(opened, "_look", lambda: 0)  # so that it never sees what another has done
    with pytest.raises(NoAnswer, match=r"others change the table all the time.*go on from the checkpoint"):
        opened.put(data, 2)


def test_who_makes_a_table_late_takes_no_column_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = target_at(f"delta:{tmp_path}/out").open_target("run")
    other = pa.table({"event": ["other"], "begin": [0.0], "end": [0.0], "x": [1]})
    write_deltalake(tmp_path / "other", other)
    data, make = load(opened, "a"), OpenDeltaTarget._make

    def late(self: OpenDeltaTarget, rows: pa.Table, number: int) -> None:
        def batches() -> Iterator[pa.RecordBatch]:  # when nobody looks any more whether there is a table
            shutil.copytree(tmp_path / "other", tmp_path / "out", dirs_exist_ok=True)
            yield from rows.to_batches()

        make(self, pa.RecordBatchReader.from_batches(rows.schema, batches()), number)

    monkeypatch.setattr(OpenDeltaTarget, "_make", late)
    opened.put(data, 1)
    found = [(row["event"], row["x"], row["id"]) for row in rows(tmp_path / "out")]
    assert found == [("big", None, "a"), ("other", 1, None)]


def test_those_who_make_a_table_at_once_all_find_their_columns_in_it(tmp_path: Path) -> None:
    names = [f"c{k}" for k in range(6)]
    for number in range(4):
        target = target_at(f"delta:{tmp_path}/{number}")
        opened = [target.open_target(name) for name in names]
        loads = [load(one, "x", column=name) for one, name in zip(opened, names, strict=True)]
        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(lambda one, data: one.put(data, 1), opened, loads))
        found = pa.table(DeltaTable(tmp_path / str(number)).scan())
        assert sorted(found.column_names) == ["begin", *names, "end", "event"]
        assert [found[name].drop_null().to_pylist() for name in names] == [["x"]] * len(names)


# ---- there and back --------------------------------------------------------------------------------------------

COPY = """
    EVENT order(id: string, qty: int, price: float, ok: bool, at: time) LASTS ANY;
    copy(id, qty, price, ok, at) <- o: order(id, qty, price, ok, at);
"""
BACK = """
    EVENT copy(id: string, qty: int, price: float, ok: bool, at: time) LASTS ANY;
    again(id, qty, price, ok, at) <- c: copy(id, qty, price, ok, at);
"""
WHOLE = st.integers(-(2**40), 2**40)
INSTANTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda at: at.isoformat(timespec="microseconds").replace("+00:00", "Z")
)


def histories(times: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Events whose times are all numbers, or all texts."""
    values = st.tuples(
        st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=5),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        times,
    )
    spans = st.tuples(times, times).map(sorted)
    events = st.builds(lambda span, data: {"event": "order", "time": span, "data": list(data)}, spans, values)
    return st.lists(events, min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(histories(WHOLE) | histories(INSTANTS))
@example([{"event": "order", "time": [2**40 - 1, 2**40], "data": ["", -(2**63), -0.0, True, 1 - 2**40]}])
def test_what_is_written_and_read_again_are_the_same_events(events: Sequence[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        where = f"delta:{folder}/t"
        expected = ephemera.compile(COPY).run(list(events))
        ephemera.compile(COPY).run(list(events), sink=sinks.at(where))
        found = ephemera.compile(BACK).run(sources.at(where))
    assert [{**one, "event": "copy"} for one in found] == list(expected)


# ---- copies of a checkpoint ------------------------------------------------------------------------------------


def test_an_older_copy_of_a_checkpoint_is_refused_and_may_write_elsewhere(tmp_path: Path) -> None:
    assert run_live(tmp_path, add(tmp_path, 1, 3)).exit_code == 0
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    for number in (4, 5):
        assert run_live(tmp_path, add(tmp_path, number)).exit_code == 0
    there = rows(tmp_path / "out")
    refused = run_live(tmp_path, add(tmp_path, 6), checkpoint=tmp_path / "copy")
    assert refused.exit_code == 3
    assert "has had commit 3 of this run" in refused.stderr
    assert "is at commit 1, so it is an older copy" in refused.stderr
    assert rows(tmp_path / "out") == there
    where = f"delta:{tmp_path}/orders"
    elsewhere = run_live(tmp_path, where, checkpoint=tmp_path / "copy", output=f"delta:{tmp_path}/other")
    assert elsewhere.exit_code == 0, elsewhere.output
    assert [row["id"] for row in rows(tmp_path / "other")] == ["o3", "o4", "o5"]
    assert run_live(tmp_path, where).exit_code == 0  # the checkpoint itself goes on
    assert [row["id"] for row in rows(tmp_path / "out")] == ["o3", "o4", "o5"]


def test_a_copy_that_is_as_new_goes_on(tmp_path: Path) -> None:
    for number in (3, 4):
        assert run_live(tmp_path, add(tmp_path, number)).exit_code == 0
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    done = run_live(tmp_path, add(tmp_path, 5), checkpoint=tmp_path / "copy")
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows(tmp_path / "out")] == ["o3", "o4"]


def test_a_file_of_which_the_checkpoint_knows_nothing_is_not_written_over(tmp_path: Path) -> None:
    where, out = add(tmp_path, 3, 4), tmp_path / "out.jsonl"
    out.write_text("yesterday\n")
    for option in ("output", "dead-letter"):
        refused = run_live(tmp_path, where, ORDERS, **{option: out})
        assert refused.exit_code == 2
        assert "is not empty, and a live run that begins anew would write over it" in refused.stderr
        assert out.read_text() == "yesterday\n"
    out.unlink()
    for number in (5, 6):
        assert run_live(tmp_path, where, output=out).exit_code == 0
        add(tmp_path, number)
    assert [json.loads(line)["data"][0] for line in out.read_text().splitlines()] == ["o3", "o4"]


# ---- addresses that are spelt otherwise ------------------------------------------------------------------------


def test_a_run_goes_on_where_an_address_is_spelt_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "orders")
    letters = tmp_path / "letters.jsonl"
    spelt = (f"delta:{tmp_path}/orders", "delta:orders", "delta:./orders?every=2", "delta:link", "delta:moved")
    for number, where in enumerate(spelt):
        add(tmp_path, 3 + number)
        if where == "delta:moved":  # the table says itself what it is
            shutil.move(tmp_path / "orders", tmp_path / "moved")
        done = run_live(tmp_path, where, ORDERS, **{"dead-letter": letters})
        assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert [row["id"] for row in rows(tmp_path / "out")] == ["o3", "o4", "o5", "o6"]
    assert not letters.read_text()


def test_another_table_in_the_place_of_one_is_refused(tmp_path: Path) -> None:
    assert run_live(tmp_path, add(tmp_path, 3, 4)).exit_code == 0
    (tmp_path / "more").mkdir()
    refused = run_live(tmp_path, add(tmp_path / "more", 5, 6))
    assert refused.exit_code == 3
    assert f"knows how far `delta:{tmp_path}/orders` was read, which is not read now" in refused.stderr
    assert [row["id"] for row in rows(tmp_path / "out")] == ["o3"]
