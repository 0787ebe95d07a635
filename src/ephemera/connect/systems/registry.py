"""This module knows which system an address belongs to, and makes its source or target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from ephemera.base.suggest import suggestion
from ephemera.connect.source import Source
from ephemera.connect.systems.address import Address, WrongAddress, address, is_address
from ephemera.connect.systems.delta_sink import DeltaTarget
from ephemera.connect.systems.delta_source import DeltaSource
from ephemera.connect.systems.delta_stretches import DeltaStretches
from ephemera.connect.systems.http_sink import HttpTarget
from ephemera.connect.systems.kafka_sink import KafkaTarget
from ephemera.connect.systems.kafka_source import KafkaSource
from ephemera.connect.systems.kafka_stretches import KafkaStretches
from ephemera.connect.systems.live import Target
from ephemera.connect.systems.mqtt import MqttSource, MqttTarget
from ephemera.connect.systems.plug_ins import PlugInAsSource, PlugInAsTarget, plug_in, schemes
from ephemera.connect.systems.postgres_sink import PostgresTarget
from ephemera.connect.systems.postgres_source import PostgresSource
from ephemera.connect.systems.postgres_stretches import PostgresStretches
from ephemera.connect.systems.stretches import InStretches
from ephemera.rules.nodes import Catalogue

AnySource: TypeAlias = KafkaSource | PostgresSource | MqttSource | DeltaSource | PlugInAsSource
_READ = ("kafka", "mqtt", "postgresql", "postgres", "delta")
_WRITTEN = (*_READ, "http", "https")


def is_system(name: str) -> bool:
    """Whether a name is the address of a system that this process can talk to, and no file's, here or elsewhere."""
    if not is_address(name):
        return False
    scheme = name.partition(":")[0]
    known = (*_WRITTEN, *schemes("ephemera.sources"), *schemes("ephemera.sinks"))
    return scheme.lower() in known


def source_at(name: str, only: str | None = None, columns: frozenset[str] = frozenset()) -> AnySource:
    """The source at an address; `columns` are those that programs declare."""
    where = address(name)
    match where.scheme:
        case "kafka":
            return KafkaSource(where, only, columns)
        case "mqtt":
            return MqttSource(where, only, columns)
        case "postgresql":
            return PostgresSource(where, only, columns)
        case "delta":
            return DeltaSource(where, only)
        case _:
            made = plug_in("ephemera.sources", where)
            if made is None:
                raise _unknown(where, "read", [*_READ, *schemes("ephemera.sources")])
            return PlugInAsSource(where, [made], only)


def in_stretches(name: str, only: str | None = None, columns: frozenset[str] = frozenset()) -> InStretches:
    """What is at an address, as something that many machines can read."""
    match source_at(name, only, columns):
        case KafkaSource() as source:
            return KafkaStretches(source)
        case PostgresSource() as source:
            return PostgresStretches(source)
        case DeltaSource() as source:
            return DeltaStretches(source)
        case _:
            raise WrongAddress(
                f"`{name}` cannot be read by many machines, nor twice: read it by `--engine local`, or let Kafka stand "
                "between"
            )


def history_at(name: str, only: str | None = None, columns: frozenset[str] = frozenset()) -> Source:
    """The same of what has a history."""
    found = source_at(name, only, columns)
    if not isinstance(found, Source):
        raise WrongAddress(f"`{name}` has no history that could be read; read it live")
    return found


def knowing(source: Source, catalogue: Catalogue) -> Source:
    """A source that knows the columns that a program declares, if it is one that can fill some of them in."""
    if isinstance(source, KafkaSource) and not source.columns:
        return replace(source, columns=declared_columns([catalogue]))
    return source


def declared_columns(catalogues: Iterable[Catalogue]) -> frozenset[str]:
    """All columns and keys that programs declare."""
    found: set[str] = set()
    for catalogue in catalogues:
        found.update(name for label in catalogue.events for name in catalogue.columns(label) or ())
        found.update(name for source in catalogue.sources for name in source.time)
    return frozenset(found)


def target_at(name: str) -> Target:
    """The target at an address."""
    where = address(name)
    match where.scheme:
        case "kafka":
            return KafkaTarget(where)
        case "mqtt":
            return MqttTarget(where)
        case "postgresql":
            return PostgresTarget(where)
        case "delta":
            return DeltaTarget(where)
        case "http" | "https":
            return HttpTarget(where)
        case _:
            made = plug_in("ephemera.sinks", where)
            if made is None:
                raise _unknown(where, "write to", [*_WRITTEN, *schemes("ephemera.sinks")])
            return PlugInAsTarget(where, made)


def _unknown(where: Address, verb: str, known: list[str]) -> WrongAddress:
    meant = suggestion(where.scheme, known)
    guess = f"; did you mean `{meant}{':' if meant == 'delta' else '://'}`?" if meant is not None else ""
    return WrongAddress(f"cannot {verb} `{where}`: there is no `{where.scheme}://` here, but {', '.join(known)}{guess}")
