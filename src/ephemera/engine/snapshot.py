"""This module makes the state of an engine a value: a manifest, and segments of Arrow tables.

A segment holds the tuples of one run. Runs never change, so a later snapshot needs only the segments that an earlier
one does not have. The manifest says which segments make up each history, where the bounds stand, and of which program
it is the state: an engine of another program refuses it, with what differs. `docs/snapshots.md` describes the form.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ephemera.algebra import explain
from ephemera.algebra.nodes import Plan
from ephemera.base.errors import EphemeraError
from ephemera.engine.counters import count_on, counted
from ephemera.engine.events import Events
from ephemera.engine.lanes import Lane
from ephemera.engine.local import Engine
from ephemera.kernels.arrow import from_arrow, to_arrow
from ephemera.kernels.history import Run

FORMAT = 2
MANIFEST = "manifest.json"


class WrongSnapshot(EphemeraError):
    """A snapshot that this engine cannot go on from."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of an engine; `segments` are those that an earlier snapshot did not have."""

    manifest: Mapping[str, Any]
    segments: Mapping[str, pa.Table]

    @property
    def names(self) -> frozenset[str]:
        """All segments that it needs, its own and earlier ones."""
        return frozenset(_segments(self.manifest))

    def save(self, folder: Path) -> None:
        """Writes segments, then the manifest, each under another name first; what nothing needs any more goes last."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in self.segments.items():
            temporary = folder / f"{name}.tmp"
            with pa.OSFile(str(temporary), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            _rename(temporary, folder / f"{name}.arrow")
        temporary = folder / f"{MANIFEST}.tmp"
        temporary.write_text(json.dumps(self.manifest, ensure_ascii=False), encoding="utf-8")
        _rename(temporary, folder / MANIFEST)
        for old in folder.glob("*.arrow"):
            if old.stem not in self.names:
                old.unlink()


def _rename(temporary: Path, final: Path) -> None:
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.replace(final)


def load(folder: Path) -> Snapshot:
    """The snapshot in a folder, with all its segments."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WrongSnapshot(f"there is no snapshot in {folder}: {error}") from None
    if manifest.get("format") != FORMAT:
        raise WrongSnapshot(f"the snapshot has format {manifest.get('format')}, and this is format {FORMAT}")
    segments: dict[str, pa.Table] = {}
    for name in _segments(manifest):
        with pa.memory_map(str(folder / f"{name}.arrow")) as file:
            segments[name] = pa.ipc.open_file(file).read_all()
    return Snapshot(manifest, segments)


def _segments(manifest: Mapping[str, Any]) -> list[str]:
    found = [part["segment"] for part in manifest["waiting"]]
    for lane in manifest["lanes"]:
        found += [run["segment"] for runs in lane["histories"].values() for run in runs]
        found += lane["pending"].values()
    return found


# ---- taking ------------------------------------------------------------------------------------------------


def take(engine: Engine, plan: Plan, known: Collection[str] = (), more: Mapping[str, Any] | None = None) -> Snapshot:
    """The state of an engine, and what else belongs to it; the segments that are known already are left out."""
    segments: dict[str, pa.Table] = {}
    step = sum(lane.tick for lane in engine.lanes.values())
    waiting: list[dict[str, Any]] = []
    for number, (names, parts) in enumerate(engine.waiting_parts.items()):
        for k, part in enumerate(parts):
            segment = f"waiting-{step}-{number}-{k}"
            segments[segment] = to_arrow(part.batch)
            waiting.append({"lane": sorted(names), "label": part.label, "arity": part.arity, "segment": segment})
    lanes = [_lane(number, lane, known, segments, step) for number, lane in enumerate(engine.lanes.values())]
    manifest = {
        "format": FORMAT,
        "program": program_of(plan),
        "bounds": engine.sources.bounds,
        "given": engine.given,
        "more": dict(more or {}),
        "waiting": waiting,
        "lanes": lanes,
    }
    return Snapshot(manifest, {name: table for name, table in segments.items() if name not in known})


def _lane(number: int, lane: Lane, known: Collection[str], segments: dict[str, pa.Table], step: int) -> dict[str, Any]:
    histories: dict[str, list[dict[str, Any]]] = {}
    for place, (name, history) in enumerate(lane.histories.items()):
        runs: list[dict[str, Any]] = []
        for run in history.runs:
            segment = f"run-{number}-{place}-{run.number}"
            if segment not in known:
                segments[segment] = to_arrow(run.batch)
            runs.append({"segment": segment, "number": run.number, "step": run.step})
        histories[name] = runs
    pending: dict[str, str] = {}
    for place, (name, rule) in enumerate(lane.rules.items()):
        waiting = rule.pending.batch
        if waiting is not None:
            pending[name] = f"pending-{step}-{number}-{place}"
            segments[pending[name]] = to_arrow(waiting)
    return {**counted(lane), "histories": histories, "pending": pending}


def program_of(plan: Plan) -> dict[str, str]:
    """What the state belongs to: each point with its expression."""
    return {name: explain.point_text(plan, point) for name, point in plan.points.items()}


# ---- going on ----------------------------------------------------------------------------------------------


def restore(engine: Engine, plan: Plan, snapshot: Snapshot) -> None:
    """Puts an engine that has just been made into the state of a snapshot."""
    compare(snapshot.manifest["program"], program_of(plan))
    manifest = snapshot.manifest
    engine.sources.bounds.update(manifest["bounds"])
    engine.given = manifest["given"]
    by_names = {tuple(sorted(names)): parts for names, parts in engine.waiting_parts.items()}
    for part in manifest["waiting"]:
        names = plan.catalogue.attributes(part["label"])
        batch = from_arrow(snapshot.segments[part["segment"]])
        by_names[tuple(part["lane"])].append(Events(part["label"], batch, part["arity"], names))
    for lane, state in zip(engine.lanes.values(), manifest["lanes"], strict=True):
        count_on(lane, state)
        for name, runs in state["histories"].items():
            history = lane.histories[name]
            for run in runs:
                batch = from_arrow(snapshot.segments[run["segment"]])
                latest = {s: int(batch[s].max()) for s in history.stamps}
                history.stored.append(Run(batch, run["step"], run["number"], latest))
        for name, segment in state["pending"].items():
            lane.rules[name].wait_for(from_arrow(snapshot.segments[segment]))


def compare(theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Refuses what belongs to another program, with what differs."""
    for name in dict.fromkeys([*theirs, *ours]):
        if name not in ours:
            raise WrongSnapshot(f"the snapshot is of another program: it has `{name}`, and this has not")
        if name not in theirs:
            raise WrongSnapshot(f"the snapshot is of another program: it lacks `{name}`")
        if theirs[name] != ours[name]:
            raise WrongSnapshot(
                f"the snapshot is of another program: `{name}` was\n{theirs[name]}\nand is\n{ours[name]}"
            )
