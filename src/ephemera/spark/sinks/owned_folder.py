"""This module keeps folders that one live query writes to, and no other.

A folder has a file that names its query. At each start the query must be the same, else the folder is refused, and what
a crash has left of unfinished files is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from ephemera.base.errors import EphemeraError
from ephemera.engine.state.durable_files import TEMPORARY, Files, Mark, files_of, seal, unseal

OWNER = "_ephemera.json"
"""The file that says which query a folder belongs to; Spark does not read what begins so."""

KIND = "owner of a folder"
FORMAT = 2
_WAY_OUT = "bring the file back from a copy, or name a new folder"


class WrongFolder(EphemeraError):
    """A folder that a stream cannot write to."""


def unmarked(step: str) -> None:
    """Nobody looks at the steps."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a query."""

    files: Files
    path: str

    def claim(self, query: str) -> None:
        """Makes the folder one of a query; refuses what belongs to another, or holds other things."""
        self.files.make(self.path)
        names = [n for n in self.files.names(self.path) if not n.startswith(".") and not n.endswith(TEMPORARY)]
        if OWNER in names:
            path = f"{self.path}/{OWNER}"
            told = unseal(bytes(self.files.read(path)), KIND, FORMAT, path, _WAY_OUT)
            owner = told["query"]
            if owner != query:
                raise WrongFolder(
                    f"`{self.path}` holds what query {owner} wrote, and this is query {query}; "
                    "go on with the checkpoint of that query, or name another folder"
                )
        elif names:
            raise WrongFolder(f"`{self.path}` holds other things, such as `{names[0]}`; name a new folder")
        else:
            self._sign(query)

    def tidy(self, query: str, is_stale: Callable[[str], bool]) -> None:
        """Removes what is stale, and files that never became whole; they stay away when this returns."""
        stale = [name for name in self.files.names(self.path) if name.endswith(TEMPORARY) or is_stale(name)]
        for name in stale:
            self.files.remove(f"{self.path}/{name}")
        if stale:
            self._sign(query)  # which makes all names in the folder durable

    def _sign(self, query: str) -> None:
        self.put(OWNER, seal(KIND, FORMAT, {"query": query}), unmarked)

    def put(self, name: str, data: bytes | pa.Buffer, mark: Mark) -> None:
        """A file that is there as a whole or not at all, and stays when this returns."""
        self.files.put(f"{self.path}/{name}", [data], mark)


def folder_at(path: str) -> Folder:
    """The folder at a path."""
    return Folder(*files_of(path))
