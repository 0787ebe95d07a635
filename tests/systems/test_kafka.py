"""Kafka is read to the end that it has, or live with its position in a checkpoint; answers come there once."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path

import fastavro
import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera import sources
from ephemera.base import installed
from ephemera.cli.main import app
from ephemera.connect.systems import kafka_sink
from ephemera.connect.systems.address import NoAnswer, WrongAddress, address
from ephemera.connect.systems.kafka_source import KafkaSource
from ephemera.connect.systems.kafka_stretches import KafkaStretches
from ephemera.connect.systems.registry import target_at
from ephemera.connect.systems.stretches import Stretch
from ephemera.formats.decode import Lines
from tests.systems.brokers import SHOP, committed, make_topic, order, program_file, send

SEEN = "EVENT order(id: string); seen(id) <- o: order(id);"


def run(*given: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, given)])


def test_a_topic_is_read_to_the_end_that_it_has(kafka: str, fresh: str) -> None:
    where = make_topic(kafka, fresh)
    send(kafka, fresh, [order(k, k) for k in range(5)])
    send(kafka, fresh, [{"event": "shipped", "time": 3, "data": ["o2"]}])
    answers = ephemera.compile(SHOP).run(sources.at(where))
    assert [answer["data"] for answer in answers] == [["o0"], ["o1"], ["o3"], ["o4"]]


def test_what_a_message_has_besides_its_value_can_be_attributes(kafka: str, fresh: str) -> None:
    where = make_topic(kafka, fresh, partitions=1)
    send(kafka, fresh, [{"id": "a"}], key=b"k1", headers=[("source", b"till")], timestamp=1_700_000_000_000)
    program = ephemera.compile(
        """
        EVENT order(id: string, key: string FROM "kafka_key", from: string FROM "kafka_header_source",
                    at: int FROM "kafka_offset");
        STREAM s CARRIES order TIME kafka_timestamp;
        seen(i, k, f, a) <- o: order(i, k, f, a);
        """
    )
    assert program.run(sources.at(where, "order")) == [
        {"event": "seen", "time": "2023-11-14T22:13:20Z", "data": ["a", "k1", "till", 0]}
    ]


def test_rows_of_csv_and_records_of_avro_are_events(kafka: str, fresh: str, tmp_path: Path) -> None:
    where = make_topic(kafka, fresh, partitions=1)
    send(kafka, fresh, [b"order,1,a", b'order,2,"b, c"'])
    assert [a["data"] for a in ephemera.compile(SEEN).run(sources.at(f"{where}?format=csv&columns=event,time,id"))] == [
        ["a"],
        ["b, c"],
    ]
    fields = [{"name": "time", "type": "long"}, {"name": "id", "type": "string"}]
    schema = {"type": "record", "name": "order", "fields": fields}
    (tmp_path / "order.avsc").write_text(json.dumps(schema))
    record = io.BytesIO()
    fastavro.schemaless_writer(record, fastavro.parse_schema(schema), {"time": 7, "id": "d"})
    make_topic(kafka, f"{fresh}-avro", partitions=1)
    send(kafka, f"{fresh}-avro", [record.getvalue()])
    source = sources.at(f"{kafka}/{fresh}-avro?format=avro&schema={tmp_path}/order.avsc", "order")
    assert ephemera.compile(SEEN).run(source) == [{"event": "seen", "time": 7, "data": ["d"]}]


def test_reading_begins_at_a_time_or_at_the_end(kafka: str, fresh: str) -> None:
    where = make_topic(kafka, fresh, partitions=1)
    send(kafka, fresh, [{"event": "order", "time": 1, "data": ["old"]}], timestamp=1_600_000_000_000)
    send(kafka, fresh, [{"event": "order", "time": 2, "data": ["new"]}], timestamp=1_700_000_000_000)
    program = ephemera.compile(SEEN)
    assert [a["data"] for a in program.run(sources.at(f"{where}?start=2022-01-01T00:00:00Z"))] == [["new"]]
    assert program.run(sources.at(f"{where}?start=latest")) == []


def test_a_live_run_goes_on_from_its_checkpoint_and_no_answer_comes_twice(
    kafka: str, fresh: str, tmp_path: Path
) -> None:
    where, out = make_topic(kafka, fresh), make_topic(kafka, f"{fresh}-out", partitions=1)
    program = program_file(tmp_path)
    given: list[object] = ["--mode", "stream", "--engine", "local", "--trigger", "once", "--input", where]
    given += ["--output", f"{out}?key=id", "--output", tmp_path / "answers.jsonl", "--checkpoint", tmp_path / "state"]
    for begin in (0, 100, 200):
        for partition in (0, 1):
            send(kafka, fresh, [order(begin + partition, begin)], partition)
        done = run(program, *given)
        assert done.exit_code == 0, done.output
    answers = committed(kafka, f"{fresh}-out")
    assert [(a["key"], a["time"]) for a in answers] == [
        ("o0", [0, 6]),
        ("o1", [0, 6]),
        ("o100", [100, 106]),
        ("o101", [100, 106]),
    ]
    assert len((tmp_path / "answers.jsonl").read_text().splitlines()) == 4


def test_a_run_that_begins_at_the_end_goes_on_from_there_though_nothing_came(
    kafka: str, fresh: str, tmp_path: Path
) -> None:
    where = make_topic(kafka, fresh, partitions=1)
    send(kafka, fresh, [order(0, 0)])
    program = program_file(tmp_path, "EVENT order(id: string, qty: int); seen(id) <- o: order(id, q);")
    live = (program, "--mode", "stream", "--trigger", "once", "--checkpoint", tmp_path / "state")
    assert not run(*live, "--input", f"{where}?start=latest").stdout
    send(kafka, fresh, [order(1, 1), order(2, 2)])
    assert "o1" in run(*live, "--input", f"{where}?start=latest").stdout
    send(kafka, fresh, [order(3, 3)])
    done = run(*live, "--input", where)  # where to begin is no part of what is read
    assert ("o2" in done.stdout, "o1" in done.stdout, "o0" in done.stdout) == (True, False, False)


def test_a_run_goes_on_by_another_broker_of_the_cluster(kafka: str, fresh: str, tmp_path: Path) -> None:
    where = make_topic(kafka, fresh, partitions=1)
    live = [
        program_file(tmp_path, "EVENT order(id: string, qty: int); seen(id) <- o: order(id, q);"),
        "--mode",
        "stream",
    ]
    live += ["--trigger", "once", "--checkpoint", tmp_path / "state"]
    send(kafka, fresh, [order(1, 1), order(2, 2)])
    assert run(*live, "--input", where).stdout.count("seen") == 1
    send(kafka, fresh, [order(3, 3)])
    done = run(*live, "--input", f"{where.replace('127.0.0.1', 'localhost')}?start=latest")
    assert (done.exit_code, done.stderr, "o2" in done.stdout) == (0, "", True)
    send(kafka, make_topic(kafka, f"{fresh}-more").rpartition("/")[2], [order(4, 4)])
    assert run(*live, "--input", f"{where}-more").exit_code == 3


def test_a_bad_message_is_told_with_its_offset(kafka: str, fresh: str, tmp_path: Path) -> None:
    where = make_topic(kafka, fresh, partitions=1)
    send(kafka, fresh, [order(1, 1), b"{no json", order(2, 2)])
    letters = tmp_path / "letters.jsonl"
    live = ["--mode", "stream", "--trigger", "once"]
    done = run(program_file(tmp_path), *live, "--input", where, "--dead-letter", letters)
    assert done.exit_code == 0, done.output
    assert f"{fresh}, partition 0, offset 1" in letters.read_text()
    first = next(line for line in done.stderr.splitlines() if "bad" in line)
    assert first.startswith(f"the first bad event: {fresh}, partition 0, offset 1: ")


def test_stretches_that_follow_one_another_in_a_process_give_each_message_once(kafka: str, fresh: str) -> None:
    where = make_topic(kafka, fresh, partitions=1)
    target = target_at(where).open_target(fresh)
    for commit in range(1, 6):  # each leaves a mark behind its messages, which is no message
        target.put(b"".join(b'{"n": %d}\n' % n for n in range(commit * 7, commit * 7 + 7)), commit)
    target.close()
    system = KafkaStretches(KafkaSource(address(where)))
    reached = system.reached(system.begin()).position
    for length in (1, 4, 8, 40):
        cuts = [*range(0, int(reached["0"]), length), int(reached["0"])]
        arrived = [one for first, last in pairwise(cuts) for one in system.read(Stretch("0", first, last))]
        lines = [line for one in arrived if isinstance(one.batch, Lines) for line in one.batch.data.splitlines()]
        assert [json.loads(line)["n"] for line in lines] == list(range(7, 42))


def test_an_answer_that_is_too_large_is_told_with_a_way_out_and_nothing_is_committed(kafka: str, fresh: str) -> None:
    where = make_topic(kafka, fresh, partitions=1)
    target = target_at(where).open_target(fresh)
    with pytest.raises(NoAnswer, match=r"`max\.message\.bytes`"):
        target.put(b'{"n": 1}\n{"n": "' + b"x" * 3_000_000 + b'"}\n', 1)
    target.close()
    again = target_at(where).open_target(fresh)
    again.put(b'{"n": 2}\n', 1)
    again.close()
    assert [one["n"] for one in committed(kafka, fresh)] == [2]


def test_a_large_commit_is_one_transaction(kafka: str, fresh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_sink, "_SMALL", 1_000)
    target = target_at(make_topic(kafka, fresh, partitions=1)).open_target(fresh)
    target.put(b'{"n": 0}\n', 1)
    target.put(b'{"n": 1}\n' * 10_000, 2)
    assert target._seconds == kafka_sink._LONG  # type: ignore[attr-defined]
    target.close()
    assert len(committed(kafka, fresh)) == 10_001


def test_a_broker_that_ends_transactions_sooner_gets_short_ones(
    kafka: str, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_sink, "_SMALL", 0)
    monkeypatch.setattr(kafka_sink, "_LONG", 100_000.0)
    target = target_at(make_topic(kafka, fresh, partitions=1)).open_target(fresh)
    target.put(b'{"n": 0}\n', 1)
    assert target._seconds == kafka_sink._SHORT  # type: ignore[attr-defined]
    target.close()
    assert len(committed(kafka, fresh)) == 1


def test_a_row_with_a_line_break_is_a_dead_letter_and_the_run_goes_on(kafka: str, fresh: str, tmp_path: Path) -> None:
    where, letters = make_topic(kafka, fresh, partitions=1), tmp_path / "letters.jsonl"
    send(kafka, fresh, [b"order,1,a", b'order,2,"b\nc"', b"order,3,d", b"order,4,e"])
    live = ["--mode", "stream", "--trigger", "once", "--dead-letter", letters]
    done = run(program_file(tmp_path, SEEN), *live, "--input", f"{where}?format=csv&columns=event,time,id")
    assert done.exit_code == 0, done.output
    (letter,) = letters.read_text().splitlines()
    assert f"{fresh}, partition 0, offset 1" in letter
    assert [json.loads(line)["data"] for line in done.stdout.splitlines()] == [["a"], ["d"]]


def test_what_is_wrong_with_an_address_is_told_in_a_line(kafka: str, fresh: str, tmp_path: Path) -> None:
    program = program_file(tmp_path)
    for wrong, told in (
        ("kafka://127.0.0.1:9092", "names no topic"),
        ("kafka:///orders", "names no broker"),
        ("kafka://127.0.0.1/orders?strat=latest", "did you mean `start`?"),
        ("kafka://127.0.0.1/orders?start=yesterday", "`start` is earliest, latest, or a time"),
        ("kafka://127.0.0.1/orders?format=jsn", "did you mean `json`?"),
        ("kafka://127.0.0.1/orders?format=csv", "columns=event,time,id"),
    ):
        done = run(program, "--engine", "local", "--input", wrong)
        assert done.exit_code == 2
        assert told in done.output
    done = run(program, "--engine", "local", "--input", f"{kafka}/{fresh}-none")
    assert (done.exit_code, "Unknown topic" in done.output) == (3, True), done.output


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(WrongAddress) as told:
        sources.at("kafka://me:hunter2@127.0.0.1/orders")
    assert "hunter2" not in str(told.value)
    assert "EPHEMERA_KAFKA_PASSWORD" in str(told.value)
    with pytest.raises(WrongAddress) as told:
        sources.at("kafka://127.0.0.1/orders?sasl_password=hunter2")
    assert "hunter2" not in str(told.value)


def test_offsets_that_are_gone_are_told_instead_of_passed_over(kafka: str, fresh: str) -> None:
    source = KafkaSource(address(make_topic(kafka, fresh, partitions=1)))
    with pytest.raises(NoAnswer, match="what lies between is gone"):
        source.open_live({"0": 17})


def test_a_client_that_is_missing_is_told_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda _name: None)
    program = program_file(tmp_path)
    for where, extra in (("kafka://127.0.0.1/a", "kafka"), ("postgresql://127.0.0.1/a?table=b", "postgres")):
        done = run(program, "--engine", "local", "--input", where)
        assert done.exit_code == 2
        assert f"pip install 'ephemera-cep[{extra}]'" in done.output
        assert len(done.output.splitlines()) == 1


def test_answers_are_read_with_the_key_that_they_were_written_with(kafka: str, fresh: str, tmp_path: Path) -> None:
    where = make_topic(kafka, fresh)
    (tmp_path / "in.jsonl").write_text('{"event": "sale", "time": 1, "data": ["a", 3]}\n')
    first = program_file(tmp_path, "EVENT sale(id: string, n: int); order(id, n) <- s: sale(id, n);")
    assert (
        run(first, "--engine", "local", "--input", tmp_path / "in.jsonl", "--output", f"{where}?key=id").exit_code == 0
    )
    second = ephemera.compile(
        'EVENT order(who: string FROM "kafka_key", id: string, at: int FROM "kafka_offset", n: int);'
        "seen(w, i, n) <- o: order(w, i, a, n);"
    )
    assert [one["data"] for one in second.run(sources.at(where))] == [["a", "a", 3]]
