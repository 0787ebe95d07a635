"""This module knows the way to each address: which transport, with what settings, and which secrets never to show.

The transport of an address is a name that the program declares, or a kind; with a kind, the recipient may be a declared
name. Otherwise the recipient is the place itself (a URL, a file, a function), and then it must stand in the text of the
program: data must not decide what this machine opens. Functions that are given by name come before all of that.

Whatever keeps a transport from being made is told as a reason, since transports are other people's: their systems may
not be there yet, which passes, and all else refuses what is sent by them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from threading import Lock
from typing import Any, TypeAlias

from ephemera.base.errors import EphemeraError
from ephemera.base.suggest import suggestion
from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import RETRIES, Make, NotDelivered, Refused, TryLater, Way, hidden
from ephemera.formats.addresses import fixed_address
from ephemera.rules.nodes import Catalogue, EnvironmentVariable, Ruleset, TransportSettings
from ephemera.rules.transports import GROUP, SETTINGS, kind_of
from ephemera.syntax.nodes import Raise
from ephemera.terms.addresses import Address

PLACES = {"http": "url", "file": "path", "python": "function"}
"""The setting for which a recipient stands that is no declared name."""
DURATIONS = ("timeout",)
_AUTHORITY = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
_BUILT_IN = {
    "console": "console:Console",
    "file": "file:AppendedFile",
    "http": "http:Http",
    "smtp": "smtp:Smtp",
    "python": "python:Imported",
    "command": "command:Command",
    "kafka": "kafka:Kafka",
    "mqtt": "mqtt:Mqtt",
}

PartlyKnown: TypeAlias = tuple[str | None, str | None]
"""What the text of a rule says of a recipient and a transport; None stands for what is computed."""


@dataclass(frozen=True, slots=True)
class Called:
    """A function of this process as a transport: it is called with a message as JSON has it, and its key."""

    function: Callable[[dict[str, Any]], object]

    def send(self, message: Outgoing) -> None:
        self.function({**message.body, "key": message.key})

    def close(self) -> None:
        """There is nothing to free."""


@dataclass(slots=True)
class Directory:
    """The ways to all addresses of some programs."""

    declared: Mapping[str, TransportSettings]
    written: Collection[Address]
    """The addresses that stand in the text of the programs."""
    functions: Mapping[str, Callable[[dict[str, Any]], object]] = field(default_factory=dict)
    allow_command: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    only: Collection[str] | None = None
    """The recipients or transports to which messages go, if that is not all."""
    named: Collection[PartlyKnown] = ()
    """Where the rules of the programs send messages, as far as their text says it."""
    _ways: dict[Address, Way] = field(default_factory=dict)
    _transports: dict[tuple[str, str], Way] = field(default_factory=dict)
    _making: dict[tuple[str, str], Lock] = field(default_factory=dict)
    """One for each transport: one that takes long to be made holds up nobody else."""

    def __call__(self, address: Address) -> Way:
        """The way to an address; `Refused` if there is none, `TryLater` if there may be one later."""
        way = self._ways.get(address)
        if way is None:
            way = self._ways[address] = self._find(address)
        return way

    def server(self, address: Address) -> Hashable:
        """What serves an address, as far as that is known without asking it: of HTTP a host, else a transport."""
        recipient, transport = address
        for name in address:
            if name in self.functions:
                return name
        kind = kind_of(transport)
        declared = self.declared.get(transport) or self.declared.get(recipient)
        if declared is not None and (transport in self.declared or declared.kind == kind):
            url = declared.settings.get("url")
            return declared.name if not isinstance(url, str) else _host(url, recipient) or declared.name
        return (_host(recipient, "") or transport) if kind == "http" else (kind, recipient if kind in PLACES else "")

    def close(self) -> None:
        """Frees what transports hold."""
        ways = {id(way): way for way in (*self._ways.values(), *self._transports.values())}
        for way in ways.values():
            with suppress(Exception):  # transports are other people's, and one must not keep the others open
                way.transport.close()
        self._ways.clear()
        self._transports.clear()

    def check(self) -> None:
        """Raises what a run lacks for the declared transports that its messages may take.

        An address that leads nowhere is another matter: its messages are kept, and others go their way. So is a
        transport whose system does not answer: it may do so later.
        """
        for name in dict.fromkeys(name for one in self.named for name in self._taken(*one)):
            with suppress(TryLater):
                try:
                    self._made(self.declared[name])
                except Refused as error:
                    raise NotDelivered(f"{error}; with --no-deliver nothing is sent") from None

    def _taken(self, recipient: str | None, transport: str | None) -> Iterator[str]:
        """The declared transports that messages of a rule may take."""
        known = {recipient, transport}
        is_wanted = self.only is None or None in known or bool(known & set(self.only))
        if known & self.functions.keys() or not is_wanted:
            return
        for name, settings in self.declared.items():
            is_named = transport in (None, name)
            is_recipient = recipient in (None, name) and transport is not None and kind_of(transport) == settings.kind
            if name not in self.functions and (is_named or (is_recipient and transport not in self.declared)):
                yield name

    def _find(self, address: Address) -> Way:
        recipient, transport = address
        for name in address:
            if name in self.functions:
                return Way(Called(self.functions[name]))
        if transport in self.declared:
            return self._made(self.declared[transport])
        kind = kind_of(transport)
        own = self.declared.get(recipient)
        if own is not None and own.kind == kind:
            return self._made(own)
        if kind not in SETTINGS and not any(entry.name == kind for entry in entry_points(group=GROUP)):
            close = suggestion(kind, [*self.declared, *SETTINGS])
            guess = f"; did you mean `{close}`?" if close else ""
            raise Refused(f"there is no transport `{transport}`{guess}")
        if kind == "command":
            raise Refused(f'`{recipient}` is no declared command: write TRANSPORT {recipient} IS command(argv=["…"]);')
        if kind not in PLACES:
            return self._made(TransportSettings(transport, kind))
        if address not in self.written:
            raise Refused(
                f"`{recipient}` is no declared transport, and data does not decide where `{kind}` goes: "
                f"declare it, TRANSPORT … IS {kind}(…)"
            )
        return self._made(TransportSettings(recipient, kind, {PLACES[kind]: recipient}))

    def _made(self, settings: TransportSettings) -> Way:
        which = (settings.name, settings.kind)
        with self._making.setdefault(which, Lock()):
            if which not in self._transports:
                self._transports[which] = self._new(settings)
            return self._transports[which]

    def _new(self, settings: TransportSettings) -> Way:
        if settings.kind == "command" and not self.allow_command:
            raise Refused(f"`{settings.name}` runs a command, which this run does not allow; see --allow-command")
        secrets: list[str] = []
        told: dict[str, Any] = {}
        for name, value in settings.settings.items():
            if isinstance(value, EnvironmentVariable):
                if not self.environment.get(value.name):
                    raise Refused(
                        f"`{settings.name}` needs the variable {value.name} of the environment, and it is not set"
                    )
                told[name] = self.environment[value.name]
                secrets.append(told[name])
            else:
                told[name] = value / 1_000_000 if name in DURATIONS and not isinstance(value, str | tuple) else value
        try:
            retries = int(told.pop("retries", RETRIES))
            return Way(maker(settings.kind)(told), retries, tuple(secrets))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - transports and what they load are other people's
            raise _reason(settings.name, error, secrets) from None


def _reason(name: str, error: BaseException, secrets: Collection[str]) -> Refused | TryLater:
    """Why a transport could not be made, for which no message is to blame."""
    if isinstance(error, TryLater):
        return TryLater(hidden(str(error), secrets), after=error.after, is_down=True)
    if isinstance(error, EphemeraError):
        return Refused(hidden(str(error), secrets))
    reason = hidden(f"`{name}` cannot be set up: {type(error).__name__}: {error}", secrets)
    return TryLater(reason, is_down=True) if isinstance(error, OSError) else Refused(reason)


def _host(url: str, recipient: str) -> tuple[str, str] | None:
    """The server of a URL, in whose host the recipient may stand."""
    found = _AUTHORITY.match(url)
    return None if found is None else ("http", found[1].replace("{recipient}", recipient).lower())


def maker(kind: str) -> Make:
    """What makes transports of a kind."""
    if kind in _BUILT_IN:
        module, _, name = _BUILT_IN[kind].partition(":")
        found: Make = getattr(import_module(f"ephemera.deliver.transports.{module}"), name)
        return found
    (entry, *_) = entry_points(group=GROUP, name=kind)
    plugged: Make = entry.load()
    return plugged


def directory_of(
    programs: Iterable[Ruleset],
    functions: Mapping[str, Callable[[dict[str, Any]], object]] | None = None,
    *,
    allow_command: bool = False,
    only: Collection[str] | None = None,
) -> Directory:
    """The ways to all addresses of programs; of two declarations of one name the first counts."""
    declared: dict[str, TransportSettings] = {}
    written: list[Address] = []
    named: list[PartlyKnown] = []
    for rules in programs:
        catalogue: Catalogue = rules.resolved.catalogue
        declared = {**catalogue.transports, **declared}
        heads = [rule.head for rule in rules.resolved.rules]
        written += [to for head in heads if (to := fixed_address(head)) is not None]
        named += [(_text(head.recipient), _text(head.transport)) for head in heads if isinstance(head, Raise)]
    once = tuple(dict.fromkeys(written))
    every = tuple(dict.fromkeys(named))
    return Directory(declared, once, functions or {}, allow_command, only=only, named=every)


def _text(said: object) -> str | None:
    return said if isinstance(said, str) else None
