"""This module checks where runs read and write, before anything is read, and reads the tables of programs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

import click

from ephemera.cli.files import WRONG_COMMAND
from ephemera.cli.inputs import Given, told_of
from ephemera.connect.declared_tables import read_file
from ephemera.connect.systems.address import beside
from ephemera.connect.systems.registry import is_system
from ephemera.connect.written_places import Destination, Written
from ephemera.program import Program


class RunsOn(StrEnum):
    """What a run is evaluated by: Spark, or one of the engines in this process."""

    spark = "spark"
    local = "local"
    oracle = "oracle"


def check_places(places: Sequence[Destination], on: RunsOn) -> None:
    """What the oracle cannot write, and on Spark answers that go to a folder among other places."""
    if on == RunsOn.local:
        return
    system = next((p.location for p in places if p.location is not None and is_system(p.location)), None)
    folder = next((p.location for p in places if p.location is not None and not is_system(p.location)), None)
    if on == RunsOn.oracle and (system is not None or len(places) > 1 or places[0].names is not None):
        refuse("the engine `oracle` writes one file, or to standard output; `--engine local` writes anywhere")
    if folder is not None and (len(places) > 1 or places[0].names is not None):
        refuse(
            f"on Spark, answers go to systems, or all of them to one place; `{folder}` is one among others, or gets "
            "only some: name one --output, or add `--engine local`"
        )


def check_read(given: Sequence[Given], on: RunsOn) -> None:
    """The oracle reads files, and Spark of systems what many machines can read."""
    for one in [one for one in given if one.paths and is_system(one.paths[0])]:
        if on == RunsOn.oracle:
            refuse(f"`{one.paths[0]}` is read by the engines `spark` and `local`")
        if on == RunsOn.spark:
            check_stretches(one.paths[0], one.only)


def check_stretches(name: str, only: str | None) -> None:
    """Ends the command if Spark cannot read a system."""
    from ephemera.cli import systems

    systems.check_stretches(name, only)


def systems_among(places: Sequence[Destination]) -> list[str]:
    """The systems that answers go to."""
    return [place.location for place in places if place.location is not None and is_system(place.location)]


def written_systems(places: Sequence[Destination]) -> Sequence[Written]:
    """The systems among places, with what goes there."""
    if not systems_among(places):
        return ()
    from ephemera.cli.systems import systems_of

    return systems_of(places)


def is_one_file(output: str) -> bool:
    """Whether answers go to one file: what ends in nothing that says otherwise, too, unless it is a folder."""
    return not output.lower().endswith(("/", ".parquet", ".csv")) and not Path(output).is_dir()


def refuse(message: str) -> NoReturn:
    """Ends the command, which asks for something that there is not."""
    click.echo(message, err=True)
    raise click.exceptions.Exit(WRONG_COMMAND)


def declared_tables(program: Program, folder: Path, *, lenient: bool) -> dict[str, list[dict[str, Any]]]:
    """The rows of the declared tables, from CSV files beside the program or tables of a database."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for label, (location, _) in program.catalogue.table_locations.items():
        if location is None:
            continue
        if is_system(location):
            from ephemera.cli.systems import system_rows

            rows[label] = system_rows(beside(location, folder))
            continue
        with told_of(folder / location):
            schema = program.catalogue.tables[label]
            rows[label] = read_file(folder / location, schema, program.catalogue, lenient=lenient)
    return rows
