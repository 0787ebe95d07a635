"""This module makes the state of an engine a value: a manifest, and segments of Arrow tables.

A segment holds the tuples of one run. Runs never change, so a later snapshot needs only the segments that an earlier
one does not have. The manifest says which segments make up each history, where the bounds stand, and of which rules it
is the state: histories, rules and columns have names by their meaning. An engine of another program refuses it, with
what differs. In a folder it has a checksum of its own and of each segment, so that what is damaged, or comes from
elsewhere, is noticed. `docs/engine.md` describes the form.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ephemera.algebra.fingerprint import digest
from ephemera.base.errors import EphemeraError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.engine import Engine
from ephemera.engine.lane import Lane
from ephemera.engine.state.durable_files import WAY_OUT, Broken, seal, unseal
from ephemera.engine.state.identity import AnotherProgram, compare
from ephemera.engine.state.stored_tables import HISTORY, PENDING, tables_of
from ephemera.kernels.columns import from_arrow, to_arrow
from ephemera.kernels.event_columns import Events
from ephemera.rules.nodes import Catalogue

FORMAT = 4
KIND = "snapshot"
MANIFEST = "manifest.json"
CHECKS = "checks"
"""Where the manifest in a folder has the checksums of the segments."""


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
        packed = {name: _packed(table) for name, table in self.segments.items()}
        checks = {name: zlib.crc32(load) for name, load in packed.items()}
        earlier = sorted(self.names - set(checks))
        if earlier:
            stored = _manifest(folder).get(CHECKS, {})
            lacking = next((name for name in earlier if name not in stored), None)
            if lacking is not None:
                raise WrongSnapshot(
                    f"{folder} lacks {lacking}.arrow of the earlier snapshot; "
                    "save that there first, or take a whole one"
                )
            checks |= {name: stored[name] for name in earlier}
        for name, load in packed.items():
            _put(folder, f"{name}.arrow", load)
        _put(folder, MANIFEST, seal(KIND, FORMAT, {**self.manifest, CHECKS: checks}))
        for old in folder.glob("*.arrow"):
            if old.stem not in self.names:
                old.unlink()


def _packed(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _put(folder: Path, name: str, load: bytes | pa.Buffer) -> None:
    temporary = folder / f"{name}.tmp"
    with temporary.open("wb") as file:
        file.write(load)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / name)


def load(folder: Path) -> Snapshot:
    """The snapshot in a folder, with all its segments."""
    manifest = _manifest(folder)
    checks = manifest.pop(CHECKS, {})
    return Snapshot(manifest, {name: _segment(folder / f"{name}.arrow", check) for name, check in checks.items()})


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WrongSnapshot(f"there is no snapshot in {folder}: {error}") from None
    try:
        return unseal(data, KIND, FORMAT, str(path))
    except Broken as error:
        raise WrongSnapshot(str(error)) from None


def _segment(path: Path, check: int) -> pa.Table:
    try:
        load = pa.py_buffer(path.read_bytes())
    except OSError as error:
        raise WrongSnapshot(f"the snapshot lacks {path}: {error.strerror}; {WAY_OUT}") from None
    if zlib.crc32(load) != check:
        raise WrongSnapshot(
            f"{path} is damaged, or the segment of another snapshot: the manifest has another checksum; {WAY_OUT}"
        )
    with pa.ipc.open_file(load) as reader:
        return reader.read_all()


def _segments(manifest: Mapping[str, Any]) -> list[str]:
    found = [part["segment"] for part in (*manifest["waiting"], *manifest.get("apart", {}).get("rows", ()))]
    for lane in manifest["lanes"]:
        found += [run["segment"] for runs in lane["runs"].values() for run in runs]
        found += lane["pending"].values()
    return found


# ---- taking ------------------------------------------------------------------------------------------------


def take(
    engine: Engine, program: Mapping[str, str], known: Collection[str] = (), more: Mapping[str, Any] | None = None
) -> Snapshot:
    """The state of an engine of a program, and what else belongs to it; segments that are known are left out."""
    segments: dict[str, pa.Table] = {}
    step = sum(lane.tick for lane in engine.lanes.values())
    waiting: list[dict[str, Any]] = []
    for names, parts in engine.waiting_parts.items():
        for k, part in enumerate(parts):
            segment = f"waiting-{step}-{digest(sorted(names))[:8]}-{k}"
            segments[segment] = to_arrow(part.batch)
            waiting.append({"lane": sorted(names), "label": part.label, "arity": part.arity, "segment": segment})
    lanes = [_lane(sources, lane, known, segments, step) for sources, lane in engine.lanes.items()]
    counted = engine.checkpoint()
    apart = _apart(engine, segments, step)
    manifest = {
        "program": dict(program),
        "bounds": counted["bounds"],
        "given": counted["given"],
        "more": dict(more or {}),
        "waiting": waiting,
        "lanes": lanes,
        **({"apart": apart} if apart["bounds"] else {}),
    }
    return Snapshot(manifest, {name: table for name, table in segments.items() if name not in known})


def _apart(engine: Engine, segments: dict[str, pa.Table], step: int) -> dict[str, Any]:
    """The types that are judged by how close their events come: what waits for that, and the last good ones."""
    rows: list[dict[str, Any]] = []
    for label, one in engine.separations.items():
        for kind, parts in (("waiting", one.waiting), ("good", one.good())):
            for k, part in enumerate(parts):
                segment = f"apart-{kind}-{step}-{one.bound}-{digest(label)[:8]}-{k}"
                segments[segment] = to_arrow(part.batch)
                rows.append({"kind": kind, "label": label, "arity": part.arity, "segment": segment})
    return {"bounds": {label: one.bound for label, one in engine.separations.items()}, "rows": rows}


def _lane(
    sources: frozenset[str], lane: Lane, known: Collection[str], segments: dict[str, pa.Table], step: int
) -> dict[str, Any]:
    short = digest(sorted(sources))[:8]
    histories: dict[str, list[dict[str, Any]]] = {}
    pending: dict[str, str] = {}
    for (kind, name), table in tables_of(lane).items():
        if kind == HISTORY:
            histories[name] = []
        for run in table.checkpoint():
            if kind == HISTORY:
                segment = f"run-{short}-{name}-{run.number}"
                histories[name].append({"segment": segment, "number": run.number, "step": run.step})
            else:
                segment = pending[name] = f"pending-{step}-{short}-{name}"
            if segment not in known:
                segments[segment] = to_arrow(run.batch)
    # What was counted is asked last: rows that become runs are counted.
    return {"sources": sorted(sources), "counted": lane.checkpoint(), "runs": histories, "pending": pending}


# ---- going on ----------------------------------------------------------------------------------------------


def restore(engine: Engine, program: Mapping[str, str], catalogue: Catalogue, snapshot: Snapshot) -> None:
    """Puts an engine of a program that has just been made into the state of a snapshot."""
    manifest = snapshot.manifest
    try:
        compare(manifest["program"], program, "snapshot")
    except AnotherProgram as error:
        raise WrongSnapshot(
            f"{error}\nthe snapshot stays as it is, with the state of all rules: bring the old program back to go on, "
            "or begin anew with this one"
        ) from None
    lacking = sorted(snapshot.names - set(snapshot.segments))
    if lacking:
        raise WrongSnapshot(
            f"the snapshot lacks the segment {lacking[0]}: it has only what an earlier one had not; "
            "save both in one folder, and load them from there"
        )
    for part in manifest["waiting"]:
        batch = from_arrow(snapshot.segments[part["segment"]])
        events = Events(part["label"], batch, part["arity"], catalogue.attributes(part["label"]))
        engine.hold(frozenset(part["lane"]), [events])
    for state in manifest["lanes"]:
        lane = engine.lanes[frozenset(state["sources"])]
        _check_layout(lane, state["counted"])
        lane.expect(state["counted"])
        tables = tables_of(lane)
        for name, runs in state["runs"].items():
            for run in runs:
                batch = from_arrow(snapshot.segments[run["segment"]])
                tables[HISTORY, name].restore(batch, run["step"], run["number"])
        for name, segment in state["pending"].items():
            tables[PENDING, name].restore(from_arrow(snapshot.segments[segment]))
        lane.restore(state["counted"])
    apart = manifest.get("apart", {"bounds": {}, "rows": []})
    for part in apart["rows"]:
        batch = from_arrow(snapshot.segments[part["segment"]])
        events = Events(part["label"], batch, part["arity"], catalogue.attributes(part["label"]))
        separation = engine.separations[part["label"]]
        (separation.hold if part["kind"] == "waiting" else separation.recall)([events])
    for label, bound in apart["bounds"].items():
        engine.separations[label].restore(bound)
    engine.restore(manifest)


def _check_layout(lane: Lane, counted: Mapping[str, Any]) -> None:
    """Refuses the state of a version that put other rules together, or stored other joins."""
    names = lane.state_names
    rules = {names.rules[name] for name in lane.rules}
    histories = {names.histories[name] for name in lane.histories}
    if rules != counted["rules"].keys() or histories != counted["histories"].keys():
        raise WrongSnapshot(
            "the rules are those of the snapshot, and this version would keep their state in another way; "
            "go on with the version that wrote it, or begin anew"
        )
