"""Messages of live queries on Spark are delivered behind the commit, with the keys that they have everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import ephemera
from ephemera import sinks, sources, transports
from ephemera.cli.main import app

pytestmark = pytest.mark.slow

PROGRAM = """
EVENT late(id: int, desk: string);
RAISE to(recipient=var D, transport="python") { bell { id { var I } } } ON event l: late(var I, var D) END
RAISE to(recipient="office", transport="python") { bell { id { var I } } } ON event l: late(var I, "office") END
seen(i) <- l: late(i, d);
"""
EVENTS = [{"event": "late", "time": k, "data": [k, desk]} for k in range(1, 13) for desk in ("north", "office")]


def arrive(folder: Path, name: str, events: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))


def keys_of(taken: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The keys that each recipient got, in order."""
    return {to: [one["key"] for one in taken if one["recipient"] == to] for to in ("north", "office")}


def delivered_here(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    taken: list[dict[str, Any]] = []
    ephemera.compile(PROGRAM).run_all(events, deliver={"python": taken.append})
    return taken


def test_a_live_query_delivers_each_message_in_order_with_the_key_of_any_other_engine(
    spark: SparkSession, tmp_path: Path
) -> None:
    program = ephemera.compile(PROGRAM)
    taken: list[dict[str, Any]] = []
    here = delivered_here(EVENTS)
    one_by_one: list[dict[str, Any]] = []
    with program.engine(deliver={"python": one_by_one.append}) as engine:
        for event in EVENTS:
            engine.send(event)
        engine.finish()
    for number, part in enumerate((EVENTS[:10], EVENTS[10:])):
        arrive(tmp_path / "in", str(number), part)
        query = program.stream(
            spark,
            sources.Folder(str(tmp_path / "in")),
            sinks.Folder(str(tmp_path / "out")),
            checkpoint=str(tmp_path / "checkpoint"),
            trigger="once",
            deliver={"python": taken.append},
        ).start()
        query.wait()
    # Live, the last instant waits for what may come at it still.
    assert keys_of(taken) == {to: keys[:-1] for to, keys in keys_of(here).items()}
    assert keys_of(one_by_one) == keys_of(here)
    assert len(taken) == len({one["key"] for one in taken}) == 22
    assert [one["data"]["id"] for one in taken if one["recipient"] == "north"] == list(range(1, 12))
    answers = [json.loads(line) for f in (tmp_path / "out").glob("*.jsonl") for line in f.read_text().splitlines()]
    assert sum("recipient" in one for one in answers) == 22


def test_a_recipient_that_fails_gets_what_it_missed_from_the_next_start(spark: SparkSession, tmp_path: Path) -> None:
    program = ephemera.compile(PROGRAM)
    taken: list[dict[str, Any]] = []

    def start(take: Any) -> None:
        query = program.stream(
            spark,
            sources.Folder(str(tmp_path / "in")),
            sinks.Folder(str(tmp_path / "out")),
            checkpoint=str(tmp_path / "checkpoint"),
            trigger="once",
            deliver={"python": take},
        ).start()
        query.wait()

    def down(_message: dict[str, Any]) -> None:
        raise transports.TryLater("nobody is at home", is_down=True)

    arrive(tmp_path / "in", "0", EVENTS)
    start(down)
    assert taken == []
    start(taken.append)
    assert keys_of(taken) == {to: keys[:-1] for to, keys in keys_of(delivered_here(EVENTS)).items()}


def test_a_run_over_a_history_on_spark_delivers_with_the_same_keys(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.version
    text = PROGRAM.replace('transport="python"', 'transport="log"')
    (tmp_path / "desk.eq").write_text(f'TRANSPORT log IS file(path="{tmp_path}/taken.jsonl");\n{text}')
    arrive(tmp_path, "in", EVENTS)
    command = ["run", str(tmp_path / "desk.eq"), "--input", str(tmp_path / "in.jsonl"), "--deliver"]
    result = CliRunner().invoke(app, [*command, "--output", str(tmp_path / "out.jsonl")])
    assert result.exit_code == 0, result.output
    on_spark = [json.loads(line) for line in (tmp_path / "taken.jsonl").read_text().splitlines()]
    (tmp_path / "taken.jsonl").unlink()
    result = CliRunner().invoke(app, [*command, "--output", str(tmp_path / "here.jsonl"), "--engine", "local"])
    assert result.exit_code == 0, result.output
    here = [json.loads(line) for line in (tmp_path / "taken.jsonl").read_text().splitlines()]
    assert keys_of(on_spark) == keys_of(here)
    assert len(on_spark) == 24
