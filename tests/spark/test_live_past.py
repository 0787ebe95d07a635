"""A live query on Spark begins with a past: all of it is read first, once, and what is read live goes on from there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import ephemera as eph
from ephemera.cli.main import app
from ephemera.spark.live.checkpoint import Checkpoint, WrongCheckpoint
from tests.systems.past_shop import EVENTS, SHOP, told

ONCE = ("--trigger", "once")


def put(folder: Path, name: str, events: Sequence[Any]) -> None:
    """A file arrives."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{Path(name).name}.partial"
    partial.write_text("".join(json.dumps(event) + "\n" for event in events))
    partial.replace(folder / name)


def command(folder: Path, *options: str) -> Result:
    """A live run over what is there; words that begin with an at sign are names in the folder."""
    (folder / "shop.eq").write_text(SHOP)
    words = ["@shop.eq", *options, "--output", "@out/", "--checkpoint", "@check/", *ONCE]
    given = [str(folder / word[1:]) if word.startswith("@") else word for word in words]
    result = CliRunner().invoke(app, ["run", *given])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answers(folder: Path) -> list[str]:
    files = sorted((folder / "out").glob("*.jsonl"))
    return sorted(line for file in files for line in file.read_text().splitlines())


def whole(events: Sequence[Any]) -> list[str]:
    """What a run over all of it answers that is certain by the bound of what is read live."""
    engine = eph.compile(SHOP).engine()
    return sorted(json.dumps(answer) for answer in engine.send_many(events))


PAST = ("--input", "@past", "--then", "@in")


def test_what_is_read_live_goes_on_from_the_past(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    put(tmp_path, "past/a.jsonl", Random(3).sample(EVENTS[:25], 25))
    put(tmp_path, "in/a.jsonl", EVENTS[15:30])
    first = command(tmp_path, *PAST, "--progress")
    last = EVENTS[24]["time"]
    known = sum(event["time"] < last - 3 for event in EVENTS[15:25])
    assert f"the past: 25 events, the last of which ends at {last}; from there on they are read live" in first.stderr
    assert f"passed over as known: {known} of what was read live" in first.stderr
    assert answers(tmp_path) == whole(EVENTS[:30])
    put(tmp_path, "past/b.jsonl", EVENTS)  # which nobody reads any more
    put(tmp_path, "in/b.jsonl", [*EVENTS[30:], told("order", 1, 99)])
    again = command(tmp_path, *PAST)
    assert again.stderr.splitlines()[0] == "the past was read by an earlier start; this one goes on live"
    assert "passed over as known: 1 of what was read live" in again.stderr
    put(tmp_path, "in/c.jsonl", [told("order", 90, 90)])
    assert command(tmp_path, "--mode", "stream", "--input", "@in").exit_code == 0
    assert answers(tmp_path) == whole([*EVENTS, told("order", 90, 90)])


def test_a_past_that_is_empty_leaves_all_to_be_read_live(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    (tmp_path / "past").mkdir()
    put(tmp_path, "in/a.jsonl", EVENTS)
    assert "the past holds no events; all is read live" in command(tmp_path, *PAST).stderr
    assert answers(tmp_path) == whole(EVENTS)


def test_a_past_is_not_added_later_nor_left_half_read(spark: SparkSession, tmp_path: Path) -> None:
    assert spark is not None
    put(tmp_path, "past/a.jsonl", EVENTS[:20])
    put(tmp_path, "in/a.jsonl", EVENTS[10:])
    assert command(tmp_path, "--mode", "stream", "--input", "@in").exit_code == 0
    refused = command(tmp_path, *PAST)
    assert refused.exit_code == 2
    assert "was begun without a past, and goes on without one: leave out `--then`" in refused.stderr
    for name in ("check", "out"):
        shutil.rmtree(tmp_path / name)
    assert command(tmp_path, *PAST).exit_code == 0
    for name in ("past.json", "progress/0.json", "progress/1.json"):
        (tmp_path / "check" / name).unlink(missing_ok=True)  # as if the run had been killed in the past
    refused = command(tmp_path, "--mode", "stream", "--input", "@in")
    assert refused.exit_code == 2
    assert "has not been read to its end: start once more as before" in refused.stderr


def test_a_run_that_was_killed_behind_the_past_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark is not None
    put(tmp_path, "past/a.jsonl", EVENTS[:20])
    put(tmp_path, "in/a.jsonl", EVENTS[10:])

    class Killed(BaseException):
        pass

    def killed(_: Checkpoint, **_more: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "begin_live", killed)
        with pytest.raises(Killed):
            command(tmp_path, *PAST)
    put(tmp_path, "past/b.jsonl", [told("order", 1, 99)])  # too late: the past has been read
    again = command(tmp_path, *PAST)
    assert again.stderr.splitlines()[0] == "the past was read by an earlier start; this one goes on live"
    assert answers(tmp_path) == whole(EVENTS)


@pytest.mark.parametrize("name", ["past/a.jsonl", "past/[1].jsonl"])
def test_a_past_may_be_one_file(spark: SparkSession, tmp_path: Path, name: str) -> None:
    assert spark is not None
    put(tmp_path, name, EVENTS[:20])
    put(tmp_path, "past/1.jsonl", [told("order", 1, 77)])  # which the name would fit as a pattern
    put(tmp_path, "in/a.jsonl", EVENTS[10:])
    assert command(tmp_path, "--input", f"@{name}", "--then", "@in").exit_code == 0
    assert answers(tmp_path) == whole(EVENTS)


def test_python_reads_a_past_before_it_starts(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "past/a.jsonl", EVENTS[:20])
    put(tmp_path, "in/a.jsonl", EVENTS[10:])
    program, found = eph.compile(SHOP), list[Any]()
    options: dict[str, Any] = {"checkpoint": str(tmp_path / "check"), "trigger": "once"}
    past = str(tmp_path / "past")
    query = program.stream(spark, str(tmp_path / "in"), eph.sinks.Memory(found), past=past, **options).start()
    query.wait()
    assert query.totals.known > 0
    kept = ("event", "time", "data")
    assert sorted(json.dumps({name: one[name] for name in kept}) for one in found) == whole(EVENTS)
    assert "order" not in query.never().came
    with pytest.raises(ValueError, match=r"the past is read from files, and `kafka://127.0.0.1:9/t` holds none"):
        program.stream(spark, str(tmp_path / "in"), eph.sinks.Memory(found), past="kafka://127.0.0.1:9/t")
    begun = {**options, "checkpoint": str(tmp_path / "other")}
    program.stream(spark, str(tmp_path / "in"), eph.sinks.Memory([]), **begun).start().wait()
    late = program.stream(spark, str(tmp_path / "in"), eph.sinks.Memory([]), past=past, **begun)
    with pytest.raises(WrongCheckpoint, match="begun without a past"):
        late.start()
