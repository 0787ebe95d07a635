"""This module records state as a version stores it, for later versions to go on from.

A shop is watched until noon; what is kept then is recorded: a snapshot of an engine, and the checkpoint of a live query
on Spark. What the afternoon must bring is what the oracle finds in the whole day. Recordings are made once, by the
version whose name the folder has, and never changed:

PYTHONPATH=src:. python -m tests.recorded.recording tests/recorded/VERSION
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from random import Random
from typing import Any

import ephemera
from ephemera.spark.runtime.session import session

HERE = Path(__file__).parent
PROGRAM = """
TIME UNIT 1 min;
EVENT order(id: int, customer: string, sum: float);
EVENT paid(id: int, sum: float);
EVENT visit(customer: string) LASTS AT MOST 30 min;
STREAM shop CARRIES order, paid WATERMARK 5 min;
STREAM desk CARRIES visit WATERMARK 10 min;
settled(i, c) <- o: order(i, c, s), p: paid(i, t), o before p, {o, p} within 2h, t >= s;
unpaid(i, c) <- o: order(i, c, _), w: extend(o, 90), while w: not paid(i, _);
angry(i, c) <- u: unpaid(i, c), v: visit(c), {u, v} within 3h;
usual(c, avg(s), count(i)) <- v: visit(c), w: from-start-backward(v, 2h), while w: collect order(i, c, s);
large(i) <- o: order(i, _, s), s > 90.5;
small(i) <- o: order(i, _, s), s < 4.0;
known(c, i) <- o: order(i, c, _), c = "ann";
known(c, i) <- o: order(i, c, _), c = "bob";
twice(c) <- a: algebra restricted ((order(_, c, _); visit(c))[1h] - visit("eve"));
"""
LATER = {
    "2026-11-18": "",
    # Rules that differ in how long their timers last run as one since then.
    "2026-11-19": "".join(
        f"late-{length}(i) <- o: order(i, _, _), w: extend(o, {length}), while w: not paid(i, _);\n"
        for length in (70, 75, 80, 85, 95)
    ),
}
"""For each version the rules that its recording has besides."""
NOON = 360
RECORDED_AT = "/recorded-shop"
"""Where the input of a live query lay; Spark notes that, and it is on no machine."""


def told(event: str, time: int | list[int], *data: object) -> dict[str, Any]:
    return {"event": event, "time": time, "data": list(data)}


def day() -> list[dict[str, Any]]:
    """The events of a day in the order in which they arrive, the same in every version."""
    dice = Random(5)
    found = []
    for number in range(240):
        time, customer = number * 3, ("ann", "bob", "eve", "joe")[dice.randrange(4)]
        found.append(told("order", time, number, customer, dice.randrange(400) / 4))
        if dice.random() < 0.6:
            found.append(told("paid", time + dice.randrange(1, 100), number, dice.randrange(400) / 4))
        if dice.random() < 0.3:
            found.append(told("visit", [time - dice.randrange(20), time + 1], customer))
    end = [told("order", 2_000, -1, "nobody", 50.0), told("visit", 2_000, "nobody")]
    return [*sorted(found, key=_end), *end]


def _end(event: dict[str, Any]) -> int:
    time = event["time"]
    return int(time[1] if isinstance(time, list) else time)


def until_noon() -> list[dict[str, Any]]:
    return [event for event in day() if _end(event) < NOON]


def since_noon() -> list[dict[str, Any]]:
    return [event for event in day() if _end(event) >= NOON]


def write(events: list[dict[str, Any]], path: Path) -> None:
    """A file arrives."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.parent.parent / f"{path.name}.partial"
    partial.write_text("".join(json.dumps(event) + "\n" for event in events))
    partial.replace(path)


def program_of(version: str) -> ephemera.Program:
    """What runs in the recording of a version."""
    return ephemera.compile(PROGRAM + LATER[version])


def query(spark: Any, folder: Path, version: str) -> Any:
    """The live query on Spark, over all that is there."""
    program = program_of(version)
    places: dict[str, Any] = {"checkpoint": str(folder / "checkpoint"), "dead_letters": str(folder / "dead")}
    sink = ephemera.sinks.Folder(str(folder / "out"))
    return program.stream(spark, str(folder / "in"), sink, shards=2, trigger="once", **places)


def main(folder: Path) -> None:
    """Records what this version keeps at noon."""
    shutil.rmtree(folder, ignore_errors=True)
    engine = program_of(folder.name).engine()
    given = engine.send_many(until_noon())
    engine.snapshot().save(folder / "snapshot")
    (folder / "given.json").write_text(json.dumps(len(given)) + "\n")
    place = Path(RECORDED_AT)
    shutil.rmtree(place, ignore_errors=True)
    write(until_noon(), place / "in" / "morning.jsonl")
    query(session("local[2]"), place, folder.name).start().wait()
    (place / "checkpoint" / "lock").unlink(missing_ok=True)
    for name in ("checkpoint", "out"):
        shutil.copytree(place / name, folder / "spark" / name)
    shutil.rmtree(place)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
