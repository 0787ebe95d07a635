"""This module keeps with an outbox how its messages are sent, so that this can be done without the programs.

Of what comes from the environment only the names are written down.
"""

from __future__ import annotations

from typing import Any

from ephemera.deliver.directory import Directory
from ephemera.deliver.transport import NotDelivered
from ephemera.engine.state.durable_files import files_of, seal, unseal
from ephemera.rules.nodes import EnvironmentVariable, SettingValue, TransportSettings

WAYS = "ways.json"
_KIND, _FORMAT = "ways of an outbox", 1


def keep_ways(folder: str, directory: Directory) -> None:
    """Writes down what programs declare, so that messages can be sent again without them; of secrets only the names."""
    files, path = files_of(folder)
    declared = [[s.name, s.kind, {n: _told(v) for n, v in s.settings.items()}] for s in directory.declared.values()]
    content = {"declared": declared, "written": [list(to) for to in directory.written]}
    data = seal(_KIND, _FORMAT, content)
    if WAYS not in files.names(path) or bytes(files.read(f"{path}/{WAYS}")) != data:
        files.put(f"{path}/{WAYS}", [data], lambda _: None)


def kept_ways(folder: str, *, allow_command: bool = False) -> Directory:
    """The ways that a run has left with its outbox."""
    files, path = files_of(folder)
    if WAYS not in files.names(path):
        raise NotDelivered(f"`{folder}` is no outbox: it has no {WAYS}; name the folder that a run has written")
    told = unseal(bytes(files.read(f"{path}/{WAYS}")), _KIND, _FORMAT, f"{path}/{WAYS}")
    declared = {
        name: TransportSettings(name, kind, {n: _meant(v) for n, v in settings.items()})
        for name, kind, settings in told["declared"]
    }
    return Directory(declared, tuple((a, b) for a, b in told["written"]), allow_command=allow_command)


def _told(value: SettingValue) -> Any:
    if isinstance(value, EnvironmentVariable):
        return {"env": value.name}
    return list(value) if isinstance(value, tuple) else value


def _meant(value: Any) -> SettingValue:
    if isinstance(value, dict):
        return EnvironmentVariable(value["env"])
    meant: SettingValue = tuple(value) if isinstance(value, list) else value
    return meant
