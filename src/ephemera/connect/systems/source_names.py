"""This module knows what a live run reads again, however its address is spelt, and says what a checkpoint lacks of it.

A source is known by its key: its address by where it leads, without the user and without what only says how it is
read. So two programs that declare one topic, each in its own words, read it once. Where keys differ, as by the name of
another broker of the cluster, a system may say itself what it is: the cluster of a topic, the identity of a table of
Delta Lake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlencode

from ephemera.base.errors import EphemeraError
from ephemera.connect.systems.address import Address, WrongAddress
from ephemera.connect.systems.same_place import folder, has_servers, servers

_HOW = frozenset({"start", "version", "every", "changes", "sasl", "tls", "ca"})
"""The options that say how something is read, and where reading begins without a checkpoint."""
_PLAIN = {"start": "earliest", "changes": "refuse", "tls": "no", "format": "json", "framed": "no"}
"""What options mean if they are left out."""


class Named(Protocol):
    """Whatever is read."""

    @property
    def name(self) -> str:
        """What people call it."""


@runtime_checkable
class Identified(Protocol):
    """A source whose system can be asked what it is."""

    def identity(self) -> str | None:
        """What is read, whatever its address; None if the system does not say."""


class UnknownSource(EphemeraError):
    """A source of which a checkpoint knows nothing, in place of another."""


@dataclass(frozen=True, slots=True)
class Known:
    """A source as a checkpoint knows it, and how far it has been read."""

    key: str
    position: Any
    name: str
    """As it was written."""
    identity: str | None = None


def source_key(source: Named) -> str:
    """What a source is known by.

    >>> from ephemera.connect.systems.registry import source_at
    >>> source_key(source_at("kafka://Me@B,A:9092/orders?tls=no&start=latest"))
    'kafka://a:9092,b:9092/orders'
    """
    where = _address(source)
    if where is None:
        return source.name
    options = _options(where, how=False)
    query = f"?{urlencode(options)}" if options else ""
    if where.scheme == "delta":
        return f"delta:{folder(where)}{query}"
    hosts = ",".join(f"{host}:{port}" for host, port in sorted(servers(where)))
    return f"{where.scheme}://{hosts}/{where.path}{query}"


def check_alike(one: Named, other: Named) -> None:
    """Raises if what is read once would have to be read in two ways."""
    first, second = _address(one), _address(other)
    if first is not None and second is not None and _options(first, how=True) != _options(second, how=True):
        raise WrongAddress(
            f"`{first}` and `{second}` are the same, and a run reads it once for all programs; write them alike"
        )


def _address(source: Named) -> Address | None:
    """The address of a source, if it is of a kind that can be spelt in several ways."""
    found = getattr(source, "address", None)
    is_known = isinstance(found, Address) and (has_servers(found) or found.scheme == "delta")
    return found if is_known else None


def _options(where: Address, *, how: bool) -> list[tuple[str, str]]:
    said = {(name, value) for name, value in where.options.items() if _PLAIN.get(name) != value}
    return sorted((name, value) for name, value in said if (name in _HOW) == how)


# ---- checkpoints -----------------------------------------------------------------------------------------------


def known_again(sources: Mapping[str, Named], known: Sequence[Known]) -> dict[str, Known]:
    """For each source, by its key, what a checkpoint knows of it, if it does.

    Systems are asked only where something is left on both sides.
    """
    found = {one.key: one for one in known if one.key in sources}
    for key, source in sources.items():  # as a folder is moved with its tables, and in checkpoints without keys
        same = [one for one in _left(known, found) if one.name == source.name]
        if key not in found and len(same) == 1:
            found[key] = same[0]
    left = [one for one in _left(known, found) if one.identity is not None]
    identities = {key: _identity(sources[key]) for key in sources if key not in found} if left else {}
    for key, identity in identities.items():
        same = [one for one in left if one.identity == identity]
        if len(same) == 1 and list(identities.values()).count(identity) == 1:
            found[key] = same[0]
    return found


def _identity(source: Named) -> str | None:
    return source.identity() if isinstance(source, Identified) else None


def _left(known: Iterable[Known], found: Mapping[str, Known]) -> list[Known]:
    taken = {one.key for one in found.values()}
    return [one for one in known if one.key not in taken]


def changes(
    sources: Mapping[str, Named], known: Sequence[Known], found: Mapping[str, Known], checkpoint: str
) -> list[str]:
    """What to tell of sources that come and go with a start; raises if one may have come in the place of another.

    That one would be read from where its address says, so that events are lost or read again.
    """
    new = [source.name for key, source in sources.items() if key not in found]
    old = [one.name for one in _left(known, found)]
    if new and old:
        raise UnknownSource(
            f"the checkpoint `{checkpoint}` knows how far `{old[0]}` was read, which is not read now, and nothing of "
            f"`{new[0]}`: if that is the same, name it as before; if it is another one, read both once more, with "
            "`--trigger once`, and leave the old one out then, or begin anew with another checkpoint"
        )
    return [
        *(f"`{name}` is new to the checkpoint `{checkpoint}`: it is read from where its address says" for name in new),
        *(f"`{name}` is not read any more: the checkpoint `{checkpoint}` forgets how far it was" for name in old),
    ]
