"""This module keeps what a live query must know to go on: of which programs it is, and where they stood after a batch.

It stands in the folder of the checkpoint beside what Spark writes there. A query that does not belong to it is refused,
with what differs. Where the programs stood is written before Spark commits a batch, under the number of the batch; that
of the batch before stays, since Spark may come back to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from ephemera.base.errors import EphemeraError
from ephemera.engine.files import Posix, files_of
from ephemera.engine.snapshot import WrongSnapshot, compare, program_of
from ephemera.engine.spread import Spread
from ephemera.engine.standing import Standing, read_standing
from ephemera.spark.marks import mark

FORMAT = 1
QUERY = "query.json"

Standings = Mapping[int, Standing]
"""Where the programs of a query stand."""


class WrongCheckpoint(EphemeraError):
    """A checkpoint that this query cannot go on from."""


class Ledger:
    """The ledger of a live query."""

    def __init__(self, checkpoint: str) -> None:
        self._files, self._folder = files_of(checkpoint)
        self.root = self._folder if isinstance(self._files, Posix) else checkpoint.rstrip("/")
        """The checkpoint as any process finds it, wherever it was started."""
        self.state = f"{self.root}/state"
        """Where the shards have their state."""
        self._known: dict[int, Standings] = {}
        self.query = ""
        """Names the query for as long as its checkpoint lives."""

    # ---- what it belongs to --------------------------------------------------------------------------------

    def open(self, spreads: Sequence[Spread], shards: int | None, default: int) -> int:
        """Takes possession of the checkpoint; says into how many shards state is cut there."""
        self._files.make(f"{self._folder}/progress")
        programs = [_told_of(spread) for spread in spreads]
        if QUERY not in self._files.names(self._folder):
            chosen = shards or default
            self.query = uuid4().hex
            self._put(QUERY, {"format": FORMAT, "query": self.query, "shards": chosen, "programs": programs})
            return chosen
        told = self._get(QUERY)
        if told["format"] != FORMAT:
            raise WrongCheckpoint(f"the checkpoint has format {told['format']}, and this is format {FORMAT}")
        if shards is not None and shards != told["shards"]:
            raise WrongCheckpoint(
                f"the checkpoint has {told['shards']} shards, and {shards} are asked for; the number cannot change"
            )
        if len(programs) != len(told["programs"]):
            raise WrongCheckpoint(
                f"the checkpoint is of {len(told['programs'])} programs, and these are {len(programs)}"
            )
        for theirs, ours in zip(told["programs"], programs, strict=True):
            try:
                compare(theirs, ours)
            except WrongSnapshot as error:
                raise WrongCheckpoint(
                    f"{str(error).replace('snapshot', 'checkpoint')}\n"
                    "start the new program with another checkpoint, or bring the old one back"
                ) from None
        self.query = told["query"]
        return int(told["shards"])

    # ---- batches -------------------------------------------------------------------------------------------

    def before(self, batch: int) -> Standings:
        """Where the programs stood before a batch."""
        if batch == 0:
            return {}
        if batch - 1 not in self._known:
            told = self._get(f"progress/{batch - 1}.json")
            self._known[batch - 1] = {int(number): read_standing(one) for number, one in told["standings"].items()}
        return self._known[batch - 1]

    def commit(self, batch: int, standings: Standings) -> None:
        """Where they stand after a batch."""
        told = {str(number): standing.told() for number, standing in standings.items()}
        self._put(f"progress/{batch}.json", {"standings": told})
        self._known = {batch - 1: self._known.get(batch - 1, {}), batch: standings}
        mark("ledger tidy")
        for name in self._files.names(f"{self._folder}/progress"):
            number = name.removesuffix(".json")
            if number.isdigit() and int(number) < batch - 1:
                self._files.remove(f"{self._folder}/progress/{name}")
        mark("batch done")

    def _get(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(bytes(self._files.read(f"{self._folder}/{name}")))
        except (OSError, ValueError) as error:
            raise WrongCheckpoint(f"the checkpoint has no readable {name}: {error}") from None
        return found

    def _put(self, name: str, told: Mapping[str, Any]) -> None:
        load = json.dumps(told, ensure_ascii=False).encode()
        self._files.put(f"{self._folder}/{name}", [load], lambda step: mark(f"ledger {step}"))


def _told_of(spread: Spread) -> dict[str, str]:
    """What the state of a program belongs to: its rules, and what it declares. A watermark or a location may change."""
    catalogue = spread.compiled.rules.resolved.catalogue
    found = program_of(spread.compiled.plan)
    for label, schema in catalogue.events.items():
        when = "begin" if schema.arrives_at_begin else "end"
        found[f"EVENT {label}"] = f"attributes {schema.attributes}, known from its {when} on, lasts {schema.longest}"
    for source in catalogue.sources:
        found[f"STREAM {source.name}"] = f"carries {', '.join(source.carries) or 'nothing by name'}"
    return found
