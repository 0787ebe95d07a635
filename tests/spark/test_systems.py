"""Runs on Spark between real systems give what runs in one process give, and go on where they stopped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

import ephemera as eph
from ephemera.cli.main import app
from ephemera.connect.systems.address import NoAnswer
from ephemera.connect.systems.source_names import UnknownSource
from ephemera.connect.systems.stretches import Position, Reached, Stretch
from ephemera.engine.cluster.source_progress import PlaceProgress, Progress, moved
from ephemera.kernels.history import FAR
from ephemera.spark.live import positions
from ephemera.spark.live.checkpoint import Checkpoint, WrongCheckpoint
from ephemera.spark.live.positions import Positions
from ephemera.spark.live.system_intake import carried
from ephemera.spark.read.system_stretches import SystemPlace
from tests.systems.brokers import SHOP, committed, make_topic, order, program_file, send

PARTED = "EVENT a(); STREAM s CARRIES a WATERMARK 5 sec{idle}; p() <- i: a();"


def printed(*command: object) -> str:
    result = CliRunner().invoke(app, [str(part) for part in command])
    assert result.exit_code == 0, result.output
    return result.stdout


def live(spark: SparkSession, where: str, sink: Any, folder: Path) -> None:
    program = eph.compile(SHOP)
    query = program.stream(spark, eph.sources.at(where), sink, checkpoint=str(folder / "state"), trigger="once").start()
    query.wait()


def test_live_answers_are_those_of_one_process_and_come_once(
    spark: SparkSession, kafka: str, postgres: str, fresh: str, tmp_path: Path
) -> None:
    where, out = make_topic(kafka, fresh), make_topic(kafka, f"{fresh}-out", partitions=1)
    sinks = [eph.sinks.at(out), eph.sinks.at(f"{postgres}?table={fresh}")]
    program = program_file(tmp_path)
    here: list[str] = []
    for first, last in ((0, 40), (40, 90)):
        for partition in (0, 1):  # one of them is far behind
            events = [order(n, n + 30 * partition) for n in range(first, last) if n % 2 == partition]
            send(kafka, fresh, [*events, b"no event"], partition)
        live(spark, where, sinks, tmp_path)
        local = ("run", program, "--mode", "stream", "--engine", "local", "--trigger", "once", "--input", where)
        here += printed(*local, "--checkpoint", tmp_path / "local").splitlines()
    assert here
    assert [{**json.loads(line), "key": None} for line in here] == committed(kafka, f"{fresh}-out")
    with psycopg.connect(postgres) as connection:
        rows = connection.execute(f"SELECT id FROM {fresh} ORDER BY begin, id").fetchall()
    assert [row[0] for row in rows] == [json.loads(line)["data"][0] for line in here]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("ways", [(), ("--engine", "spark")], ids=["local", "spark"])
def test_a_past_in_files_goes_before_a_topic(
    kafka: str, postgres: str, fresh: str, tmp_path: Path, ways: tuple[str, ...]
) -> None:
    where, table = make_topic(kafka, fresh), f"{postgres}?table={fresh}"
    events = [order(n, n) for n in range(90)]
    (tmp_path / "past").mkdir()
    (tmp_path / "past" / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events[:50]))
    command = ("run", program_file(tmp_path), *ways, "--input", tmp_path / "past", "--then", where)
    places = ("--output", table, "--checkpoint", tmp_path / "state", "--trigger", "once")
    for first, last in ((30, 60), (60, 90), (90, 90)):
        for partition in (0, 1):
            found = [one for n, one in enumerate(events[first:last]) if n % 2 == partition]
            send(kafka, fresh, found or [order(999, 500)], partition)
        printed(*command, *places)
    whole = eph.compile(SHOP).engine().send_many([*events, order(999, 500)])
    with psycopg.connect(postgres) as connection:
        rows = connection.execute(f"SELECT id FROM {fresh} ORDER BY begin, id").fetchall()
    assert sorted(row[0] for row in rows) == sorted(answer["data"][0] for answer in whole)
    assert len(rows) > 50


def test_history_is_read_by_many_tasks_and_written_to_systems(
    kafka: str, postgres: str, fresh: str, tmp_path: Path
) -> None:
    where, out = make_topic(kafka, fresh, partitions=3), make_topic(kafka, f"{fresh}-out", partitions=1)
    send(kafka, fresh, [order(n, n) for n in range(60)])
    send(kafka, fresh, [{"event": "shipped", "time": n + 1, "data": [f"o{n}"]} for n in range(0, 60, 2)])
    program = program_file(tmp_path)
    expected = printed("run", program, "--engine", "local", "--input", where)
    assert len(expected.splitlines()) == 30
    assert printed("run", program, "--input", where) == expected
    table = f"{postgres}?table={fresh}"
    assert not printed("run", program, "--input", where, "--output", out, "--output", table)
    assert [{**json.loads(line), "key": None} for line in expected.splitlines()] == committed(kafka, f"{fresh}-out")
    again = tmp_path / "again.eq"
    again.write_text("EVENT overdue(id: string) LASTS ANY; told(id) <- o: overdue(id);")
    assert printed("run", again, "--input", table).count("told") == 30


def test_columns_of_messages_and_of_tables_mean_on_spark_what_they_do_here(
    kafka: str, postgres: str, fresh: str, tmp_path: Path
) -> None:
    where, table = make_topic(kafka, fresh), f"{postgres}?table={fresh}"
    send(kafka, fresh, [{"event": "order", "time": k, "data": [f"o{k}", k]} for k in range(9)], key=b"desk")
    program = tmp_path / "p.eq"
    program.write_text(
        'EVENT order(id: string, desk: string FROM "kafka_key", n: int); seen(d, i, n) <- o: order(i, d, n);'
    )
    here = printed("run", program, "--engine", "local", "--input", where)
    assert json.loads(here.splitlines()[-1])["data"] == ["desk", "o8", 8]
    assert printed("run", program, "--input", where) == here
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {fresh} (event text, time int, x jsonb, host inet, n numeric)")
        rows = """('e', 1, '1', '10.0.0.1', 1), ('e', 2, '"1"', NULL, 2.5), ('e', 3, 'true', NULL, 9007199254740993)"""
        connection.execute(f"INSERT INTO {fresh} VALUES {rows}")
    program.write_text("EVENT e(x: any, n: any); seen(x, n) <- i: e(x, n);")
    here = printed("run", program, "--engine", "local", "--input", table)
    assert [json.loads(line)["data"] for line in here.splitlines()] == [[1, 1.0], ["1", 2.5], [True, 2**53 + 1]]
    assert printed("run", program, "--input", table) == here


def test_a_table_is_read_live_along_a_column_that_grows(
    spark: SparkSession, postgres: str, fresh: str, tmp_path: Path
) -> None:
    answers: list[dict[str, Any]] = []
    where = f"{postgres}?table={fresh}&order=number"
    program = eph.compile("EVENT a(x: int); p(x) <- i: a(x);")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {fresh} (number serial, event text, time int, x int)")
        for first in (0, 10):
            rows = ", ".join(f"('a', {n}, {n})" for n in range(first, first + 10))
            connection.execute(f"INSERT INTO {fresh} (event, time, x) VALUES {rows}")
            source, sink = eph.sources.at(where), eph.sinks.Callback(answers.append)
            program.stream(spark, source, sink, checkpoint=str(tmp_path / "state"), trigger="once").start().wait()
    assert [answer["data"] for answer in answers] == [[n] for n in range(19)]


def test_a_table_of_delta_lake_is_read_version_by_version_and_written_once(spark: SparkSession, tmp_path: Path) -> None:
    where, out = f"delta:{tmp_path / 'in'}", f"delta:{tmp_path / 'out'}"
    program = eph.compile("EVENT a(x: int); p(x) <- i: a(x);")

    def run() -> list[int]:
        source, sink = eph.sources.at(where), eph.sinks.at(out)
        program.stream(spark, source, sink, checkpoint=str(tmp_path / "state"), trigger="once").start().wait()
        return sorted(DeltaTable(out.partition(":")[2]).to_pyarrow_table()["x"].to_pylist())

    for first in (0, 10, 20):
        rows = pa.table({"event": ["a"] * 10, "time": range(first, first + 10), "x": range(first, first + 10)})
        write_deltalake(where.partition(":")[2], rows, mode="append")
        assert run() == list(range(first + 9))
    DeltaTable(where.partition(":")[2]).delete("x < 5")
    with pytest.raises(eph.EphemeraError, match="changes=skip"):
        run()
    again = tmp_path / "again.eq"
    again.write_text("EVENT p(x: int); q(x) <- i: p(x), x > 20;")
    assert printed("run", again, "--input", out).count('"q"') == 8


def test_an_older_copy_of_a_checkpoint_is_refused_and_a_batch_that_is_done_again_is_not(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, out = f"delta:{tmp_path / 'in'}", f"delta:{tmp_path / 'out'}"
    program = eph.compile("EVENT a(x: int); p(x) <- i: a(x);")

    def run(first: int, checkpoint: str = "state") -> list[int]:
        rows = pa.table({"event": ["a"] * 10, "time": range(first, first + 10), "x": range(first, first + 10)})
        write_deltalake(where.partition(":")[2], rows, mode="append")
        source, sink = eph.sources.at(where), eph.sinks.at(out)
        program.stream(spark, source, sink, checkpoint=str(tmp_path / checkpoint), trigger="once").start().wait()
        return sorted(DeltaTable(out.partition(":")[2]).to_pyarrow_table()["x"].to_pylist())

    assert run(0) == list(range(9))
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    with monkeypatch.context() as patched:  # it ends when the table has the batch, and the checkpoint not yet
        patched.setattr(Checkpoint, "commit", lambda *_: 1 / 0)
        with pytest.raises(eph.EphemeraError):
            run(10)
    assert run(20) == list(range(29))
    with pytest.raises(eph.EphemeraError, match="so it is an older copy"):
        run(30, "copy")
    assert run(40) == list(range(49))


def test_what_many_machines_cannot_read_is_refused_with_the_way_out(tmp_path: Path) -> None:
    asked = ["run", program_file(tmp_path), "--mode", "stream", "--engine", "spark"]
    asked += ["--input", "mqtt://127.0.0.1:1/orders", "--trigger", "once"]
    result = CliRunner().invoke(app, [str(part) for part in asked])
    assert result.exit_code == 2
    assert "`--engine local`" in result.output


# ---- partitions ------------------------------------------------------------------------------------------------


def word(behind: tuple[str, ...] = (), now: int | None = None, **latest: int) -> PlaceProgress:
    return PlaceProgress(parts={"s": latest} if latest else {}, behind=dict.fromkeys(behind), now=now)


def bounds(*words: PlaceProgress, idle: str = "") -> list[int]:
    """How far the source has come after each of some batches, in seconds."""
    catalogue = eph.compile(PARTED.format(idle=idle)).catalogue
    standing, found = Progress(), []
    for one in words:
        standing = moved(standing, [one], catalogue)
        bound = standing.bound("s")
        found.append(-1 if bound == -FAR else (bound + 1) // 1_000_000)
    return found


def seconds(number: int) -> int:
    return number * 1_000_000


def test_a_source_has_come_as_far_as_its_slowest_partition() -> None:
    assert bounds(word(a=seconds(20), b=seconds(10)), word(a=seconds(30)), word(b=seconds(40))) == [5, 5, 25]


def test_a_partition_with_more_to_read_holds_its_source_back() -> None:
    assert bounds(word(("b",), a=seconds(20)), word(("b",), a=seconds(30)), word(b=seconds(12))) == [-1, -1, 7]


def test_a_silent_partition_holds_nobody_back_behind_its_idle_time() -> None:
    first = word(a=seconds(20), b=seconds(10), now=0)
    later = word(a=seconds(30), now=seconds(2)), word(a=seconds(40), now=seconds(4))
    assert bounds(first, *later, idle=" IDLE 3 sec") == [5, 5, 35]


def test_a_partition_that_is_heard_again_begins_where_its_source_stands() -> None:
    catalogue = eph.compile(PARTED.format(idle=" IDLE 3 sec")).catalogue
    standing = moved(Progress(), [word(a=seconds(20), b=seconds(10), now=0)], catalogue)
    standing = moved(standing, [word(a=seconds(40), now=seconds(4))], catalogue)
    assert standing.bound("s", "b") == standing.bound("s") == seconds(35) - 1


def test_what_is_left_in_a_topic_holds_back_the_streams_that_are_declared_there() -> None:
    catalogue = eph.compile(
        "EVENT a(); EVENT b(); EVENT c(); EVENT d(); EVENT e();"
        'STREAM s FROM "kafka://h/one" CARRIES a; STREAM t FROM "kafka://h/two" CARRIES b, c;'
        'STREAM u FROM "kafka://h/two" CARRIES d; STREAM v FROM "kafka://h/three"; p() <- i: a();'
    ).catalogue

    def sources(name: str, only: str | None = None) -> tuple[str, ...] | None:
        return carried(SystemPlace(f"kafka://h/{name}", only, ()), catalogue)

    assert sources("one", "a") == ("", "s")  # what no stream carries may stand anywhere
    assert sources("given", "b") == ("", "t")
    assert sources("two") == ("", "t", "u")
    assert (sources("three"), sources("given")) == (None, None)


# ---- positions -------------------------------------------------------------------------------------------------


class Counted:
    """A system of numbers, of which there are more each time somebody asks."""

    def __init__(self, name: str = "counted", pause: float = 0.0) -> None:
        self.there = 0
        self.name = name
        self._pause = pause

    @property
    def source(self) -> Counted:
        return self

    def every(self) -> float:
        return self._pause

    def begin(self) -> Position:
        return {"0": 0}

    def reached(self, since: Position, most: int | None = None) -> Reached:
        self.there += 10
        first = int(since["0"])
        end = self.there if most is None else min(self.there, first + most)
        return Reached({"0": end}, frozenset({"0"}) if end < self.there else frozenset())

    def between(self, first: Position, last: Position) -> list[Stretch]:
        return [Stretch("0", first["0"], last["0"])] if first != last else []

    def history(self) -> list[Stretch]:
        return []

    def read(self, stretch: Stretch) -> Any:
        raise AssertionError(stretch)


@pytest.mark.parametrize("most", [None, 4])
def test_a_batch_that_is_done_again_reads_the_same(tmp_path: Path, most: int | None) -> None:
    system = Counted()
    found: dict[int, list[Any]] = {}
    for number in (0, 0, 1, 2, 2, 3):
        ledger = Checkpoint(str(tmp_path / "state"))  # as after a crash
        ledger.query = "q"
        cut = Positions(ledger, {0: system}, most).cut(number, lambda: False)
        found.setdefault(number, []).append(cut[0])
    assert all(one == own[0] for own in found.values() for one in own)
    stretches = [stretch for own in found.values() for stretch in own[0]]
    assert [stretch.first for stretch in stretches] == [0, *(stretch.last for stretch in stretches[:-1])]
    assert all(stretch.is_behind for stretch in stretches) == (most is not None)


def test_another_system_begins_anew_and_is_no_part_of_a_batch_that_was_begun_without_it(tmp_path: Path) -> None:
    ledger = Checkpoint(str(tmp_path / "state"))
    ledger.query = "q"
    old, new = Counted(), Counted("another")
    Positions(ledger, {0: old}).cut(0, lambda: False)
    with pytest.raises(WrongCheckpoint, match="batch 0 was begun without `another`"):
        Positions(ledger, {0: new}).cut(0, lambda: False)
    told: list[str] = []
    cut = Positions(ledger, {0: new, 1: old}, tell=told.append).cut(1, lambda: False)
    assert [stretch.first for own in cut.values() for stretch in own] == [0, 10]
    assert told == [f"`another` is new to the checkpoint `{ledger.root}`: it is read from where its address says"]


def test_a_system_in_the_place_of_another_is_refused_and_may_be_left_out_later(tmp_path: Path) -> None:
    ledger = Checkpoint(str(tmp_path / "state"))
    ledger.query = "q"
    old, new = Counted(), Counted("another")
    Positions(ledger, {0: old}).cut(0, lambda: False)
    with pytest.raises(UnknownSource, match="how far `counted` was read, which is not read now, and nothing of `anoth"):
        Positions(ledger, {0: new}).cut(1, lambda: False)
    told: list[str] = []
    Positions(ledger, {0: new, 1: old}, tell=told.append).cut(1, lambda: False)
    with pytest.raises(WrongCheckpoint, match="batch 1 was begun with `counted`, which is not read now; start once mo"):
        Positions(ledger, {0: new}, tell=told.append).cut(1, lambda: False)
    Positions(ledger, {0: new}, tell=told.append).cut(2, lambda: False)
    assert told[1:] == [f"`counted` is not read any more: the checkpoint `{ledger.root}` forgets how far it was"]


def test_two_inputs_of_one_name_are_read_alike_however_a_batch_is_begun(tmp_path: Path) -> None:
    ledger = Checkpoint(str(tmp_path / "state"))
    ledger.query = "q"
    system = Counted()
    ahead = Counted()
    ahead.there = 100
    cuts = [Positions(ledger, {0: system, 1: ahead}).cut(number, lambda: False) for number in (0, 1, 1, 2)]
    assert all(cut[0] == cut[1] for cut in cuts)
    firsts = [cut[0][0].first for cut in cuts]
    assert firsts == [0, cuts[0][0][0].last, cuts[0][0][0].last, cuts[1][0][0].last]


def test_a_query_goes_on_where_an_address_is_spelt_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "in")
    program = eph.compile("EVENT a(x: int); p(x) <- i: a(x);")
    found: list[int] = []
    for number, name in enumerate(("in", "./in?every=2", "link", "moved")):
        if name == "moved":  # the table says itself what it is
            shutil.move(tmp_path / "in", tmp_path / "moved")
        rows = pa.table({"event": ["a"], "time": [number], "x": [number]})
        write_deltalake(tmp_path / name.partition("?")[0], rows, mode="append")
        source = eph.sources.at(f"delta:{tmp_path}/{name}")
        sink = eph.sinks.Callback(lambda answer: found.extend(answer["data"]))
        query = program.stream(spark, source, sink, checkpoint=str(tmp_path / "state"), trigger="once").start()
        query.wait()
        assert not query.totals.late
    assert found == [0, 1, 2]


def test_a_query_knows_its_partitions_when_inputs_are_named_in_another_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    program = eph.compile("EVENT a(x: int); STREAM s CARRIES a; p(x) <- i: a(x);")
    found: list[int] = []
    for first, names in ((0, ("slow", "fast")), (10, ("fast", "slow"))):
        for name, ahead in (("slow", 0), ("fast", 100)):
            times = range(ahead + first, ahead + first + 10)
            rows = pa.table({"event": ["a"] * 10, "time": times, "x": times})
            write_deltalake(tmp_path / name, rows, mode="append")
        sources = [eph.sources.at(f"delta:{tmp_path}/{name}") for name in names]
        sink = eph.sinks.Callback(lambda answer: found.extend(answer["data"]))
        query = program.stream(spark, sources, sink, checkpoint=str(tmp_path / "state"), trigger="once").start()
        query.wait()
        assert not query.totals.late
    assert sorted(found) == list(range(19))


def test_partitions_of_earlier_versions_are_known_by_the_numbers_of_their_inputs(tmp_path: Path) -> None:
    ledger = Checkpoint(str(tmp_path / "state"))
    ledger.query = "q"
    own = {"0/0": 5, "1/0": 7, "counted/1": 8, "gone/0": 9, "": 3}
    before = Progress(parts={"s": own}, heard={"s": dict(own)})
    read = Positions(ledger, {0: Counted("another"), 1: Counted()})
    read.cut(0, lambda: False)
    assert read.partition_now("gone/0") is None
    after = before.renamed(read.partition_now)
    assert after.parts == after.heard == {"s": {"another/0": 5, "counted/0": 7, "": 3}}
    again = Positions(ledger, {0: Counted(), 1: Counted("another")})
    again.cut(1, lambda: False)
    assert before.renamed(again.partition_now).parts["s"]["counted/1"] == 8


def test_a_broker_that_is_away_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(Counted):
        gone = 0

        def reached(self, since: Position, most: int | None = None) -> Reached:
            self.gone -= 1
            if self.gone > 0:
                raise NoAnswer("nobody is there")
            return super().reached(since, most)

    monkeypatch.setattr(positions, "_AWAY", 0.0)
    ledger = Checkpoint(str(tmp_path / "state"))
    ledger.query = "q"
    told: list[str] = []
    system = Away()
    read = Positions(ledger, {0: system}, tell=told.append)
    read.cut(0, lambda: False)
    system.gone = 5
    read.cut(1, lambda: False)
    assert told == ["nobody is there; it is waited for, 600 seconds at most", "counted answers again"]


def test_a_run_that_takes_what_is_there_reads_systems_in_its_first_new_batch(tmp_path: Path) -> None:
    ledger = Checkpoint(str(tmp_path / "state"))
    ledger.query = "q"
    system = Counted()
    before = Positions(ledger, {0: system}).cut(0, lambda: False)
    once = Positions(ledger, {0: system}, None, 0.0, once=True)
    cuts = [once.cut(number, lambda: False)[0] for number in range(4)]  # the first is done again
    assert cuts[0] == before[0]
    assert [len(cut) for cut in cuts[1:]] == [1, 0, 0]


def test_a_table_is_not_asked_all_the_time(tmp_path: Path) -> None:
    ledger = Checkpoint(str(tmp_path / "state"))
    ledger.query = "q"
    slow = Counted(pause=3600.0)
    positions = Positions(ledger, {0: slow}, None, 0.0)
    assert [len(positions.cut(number, lambda: False)[0]) for number in range(3)] == [1, 0, 0]
    assert slow.there == 10
