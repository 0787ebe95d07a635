"""This module translates sources and sinks, as Python has them in hand, into what a live query is made with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from ephemera.base.errors import warn
from ephemera.connect import live_sink, live_source
from ephemera.connect import sink as any_sink
from ephemera.connect.atomic_files import CannotWrite
from ephemera.connect.declared_streams import declared_places, overlap
from ephemera.connect.file_source import format_there
from ephemera.connect.found_files import only_fitting
from ephemera.connect.overwriting import Target, clash_among, inputs_kept, is_local, path_of
from ephemera.connect.several_sinks import ToSystem
from ephemera.connect.systems.address import WrongAddress
from ephemera.connect.systems.delta_source import DeltaSource
from ephemera.connect.systems.fed_back import fed_back
from ephemera.connect.systems.kafka_source import KafkaSource
from ephemera.connect.systems.postgres_source import PostgresSource
from ephemera.connect.written_places import Written
from ephemera.rules.nodes import Catalogue
from ephemera.spark.live.sources import SOCKET
from ephemera.spark.read.scan import Format, Input, format_of

NOTHING = "there is nothing to read: give a folder or a streaming data frame, or declare STREAM … FROM"
_DECLARED: dict[str, Format] = {"json": "json", "jsonl": "json", "parquet": "parquet", "csv": "csv", "xml": "xml"}
_SOURCES = "sources.Folder, sources.Socket, sources.SparkTable, sources.Frame or sources.at(address)"
_SINKS = "sinks.Folder, sinks.Table, sinks.Callback, sinks.Batches, sinks.Memory, sinks.Console or sinks.at(address)"


@dataclass(frozen=True, slots=True)
class LiveInputs:
    """What a query reads."""

    inputs: tuple[Input, ...]
    most_files: int | None


def inputs_of(source: Any, catalogue: Catalogue) -> LiveInputs:
    """One source or several, as values, paths or frames; without any, what the program declares."""
    if source is None:
        places = declared_places([catalogue])
        shared = overlap(places)
        if shared is not None:
            raise ValueError(shared)
        inputs = tuple(Input(one.location, _DECLARED.get((one.format or "").lower()), one.only) for one in places)
        if not inputs:
            raise ValueError(NOTHING)
        return LiveInputs(inputs, None)
    is_one = isinstance(source, str | DataFrame) or not isinstance(source, Iterable)
    several = [source] if is_one else list(source)
    if not several:
        raise ValueError(NOTHING)
    folders = [one for one in several if isinstance(one, live_source.Folder)]
    limits = {folder.most_files for folder in folders if folder.most_files is not None}
    if len(limits) > 1:
        raise ValueError(f"folders of one query take equally many files in a batch, and these ask for {sorted(limits)}")
    return LiveInputs(tuple(map(_input, several)), next(iter(limits), None))


def past_of(source: Any, catalogue: Catalogue) -> tuple[Input, ...]:
    """What is read first, all of it: files that are there."""
    inputs = inputs_of(source, catalogue).inputs
    wrong = next((one for one in inputs if not _is_stored(one)), None)
    if wrong is not None:
        raise ValueError(
            f"the past is read from files, and `{wrong.given}` holds none: a system that is read live is read from its "
            "beginning if its address says so, and needs no past"
        )
    return tuple(replace(one, given=only_fitting(one.paths[0])) if _is_file(one) else one for one in inputs)


def _is_file(given: Input) -> bool:
    return len(given.paths) == 1 and is_local(given.paths[0]) and Path(given.paths[0]).is_file()


def _is_stored(given: Input) -> bool:
    is_frame = isinstance(given.given, DataFrame)
    return not is_frame and not given.is_system and not any(SOCKET.fullmatch(path) for path in given.paths)


def _input(source: Any) -> Input:
    match source:
        case str():
            return Input(source, _format(source))
        case DataFrame():
            return Input(source)
        case live_source.Frame(frame, only):
            return Input(frame, only=only)
        case live_source.Folder(path, form, _, only):
            return Input(str(path), form or _format(str(path)), only)
        case live_source.Socket(host, port):
            return Input(f"socket://{f'[{host}]' if ':' in host else host}:{port}", "json")
        case live_source.SparkTable(name, only):
            return Input(name, "table", only)
        case KafkaSource() | PostgresSource() | DeltaSource():
            return Input(str(source.address), "json", source.only)
        case _:
            raise TypeError(f"a live query on Spark reads {_SOURCES}, and this is a {type(source).__name__}")


def _format(path: str) -> Format:
    """What a folder holds, as its name says or the files that are there; else lines of JSON."""
    try:
        return format_of(path)
    except ValueError:
        return format_there(path)


def ways_of(sink: Any) -> dict[str, Any]:
    """How a query is told where its answers go."""
    match sink:
        case None:
            return {}
        case ToSystem(target):
            return {"systems": (Written(target),)}
        case [*several] if several and all(isinstance(one, ToSystem) for one in several):
            return {"systems": tuple(Written(one.target) for one in several)}
        case live_sink.Folder(path, form):
            return {"output": str(path), "format": form}
        case live_sink.Table(name, location):
            return {"table": name, "location": location}
        case any_sink.Callback(function):
            return {"foreach": function}
        case live_sink.Batches(function):
            return {"foreach_batch": function}
        case any_sink.Memory(answers):
            return {"foreach": answers.append}
        case any_sink.Console(None):
            return {"console": True}
        case _:
            raise TypeError(f"the answers of a live query go to {_SINKS}, and this is a {type(sink).__name__}")


def check_targets(inputs: Iterable[Input], ways: Mapping[str, Any], more: Mapping[str, Any]) -> None:
    """Raises what a query would write over: what it reads, or another of its folders."""
    named = {
        "the sink": ways.get("output"),
        "the table's location": ways.get("location"),
        "dead_letters": more.get("dead_letters"),
        "checkpoint": more.get("checkpoint"),
    }
    here = {what: str(name) for what, name in named.items() if name is not None and is_local(str(name))}
    targets = [Target(what, path_of(name), is_folder=True) for what, name in here.items()]
    clash = clash_among(targets, inputs_kept(path for one in inputs if one.format != "table" for path in one.paths))
    if clash is not None:
        raise CannotWrite(clash)
    wrong = fed_back(
        [written.target.name for written in ways.get("systems", ())],
        [path for one in inputs if one.format != "table" for path in one.paths],
    )
    if wrong is not None:
        raise WrongAddress(wrong)


def old_ways(given: Mapping[str, Any], stacklevel: int) -> dict[str, Any]:
    """What old keywords say, with a warning that says what to write instead."""
    said = {
        "output": "sink=sinks.Folder({!r})",
        "format": "sink=sinks.Folder(…, format={!r})",
        "table": "sink=sinks.Table({!r})",
        "location": "sink=sinks.Table(…, location={!r})",
        "foreach": "sink=sinks.Callback(function)",
        "foreach_batch": "sink=sinks.Batches(function)",
        "most_files": "sources.Folder(…, most_files={!r})",
    }
    unknown = next((name for name in given if name not in said), None)
    if unknown is not None:
        raise TypeError(f"`stream` has no keyword `{unknown}`")
    told = {name: value for name, value in given.items() if value is not None}
    instead = ", ".join(said[name].format(value) for name, value in told.items())
    if told:
        names = ", ".join(f"`{name}=`" for name in told)
        warn([f"{names} of `stream` will go with the next version; write {instead}"], stacklevel=stacklevel + 1)
    return told
