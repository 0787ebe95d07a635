"""This module reads the addresses of systems: `scheme://user@host:port/path?option=value`, or `delta:path`.

A table of Delta Lake is a folder, on this machine or in a store. So its address has the path behind `delta:`, and a
program declares it relative to its own folder, as it declares files.

An address is written into programs, command lines, logs and checkpoints, so it never holds a password: those come from
the environment, and an address that has one is refused without repeating it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, unquote_plus, urlencode

from ephemera.base.errors import EphemeraError
from ephemera.base.suggest import suggestion

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)(?:/([^?#]*))?(?:\?([^#]*))?")
_TABLE = re.compile(r"delta:([^?#]+)(?:\?([^#]*))?", re.IGNORECASE)
_STORE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+)(?::(\d{1,5}))?")
_OTHER_NAMES = {"postgres": "postgresql"}
_BEGINS = re.compile(r"((delta:)?[A-Za-z][A-Za-z0-9+.-]*://|delta:)?", re.IGNORECASE)
"""What stands before the place itself."""
_SECRETS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "credential", "signature")
_SHORT_SECRETS = ("pass", "pwd", "sig")


class WrongAddress(EphemeraError):
    """An address that leads nowhere."""


class NoAnswer(EphemeraError):
    """A system that cannot be reached, or that refuses what is asked of it."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a system is, and what of it is meant.

    >>> address("kafka://127.0.0.1:9092/orders?start=earliest").path
    'orders'
    """

    text: str
    """As it was written."""
    scheme: str
    user: str | None
    hosts: tuple[tuple[str, int | None], ...]
    path: str
    options: Mapping[str, str]

    def __str__(self) -> str:
        return self.text

    @property
    def endpoints(self) -> tuple[tuple[str, int], ...]:
        """All hosts with their ports, or the usual one."""
        encrypted = ENCRYPTED_PORTS.get(self.scheme) if self.options.get("tls") == "yes" else None
        usual = encrypted or PORTS[self.scheme]
        return tuple((host, port or usual) for host, port in self.hosts)

    @property
    def servers(self) -> str:
        """The hosts with their ports as a text."""
        return ",".join(f"{host}:{port}" for host, port in self.endpoints)

    def without(self, options: Iterable[str]) -> str:
        """The address without some options: what is read, if these only say how.

        >>> address("kafka://127.0.0.1/orders?format=csv&start=latest&columns=event,id").without(["start"])
        'kafka://127.0.0.1/orders?format=csv&columns=event,id'
        """
        if not self.options.keys() & set(options):
            return self.text
        left = {name: value for name, value in self.options.items() if name not in set(options)}
        return self.text.partition("?")[0] + (f"?{urlencode(left, safe=',/:')}" if left else "")

    def check_options(self, known: Iterable[str]) -> None:
        """Raises what is wrong with an option that the system does not have here."""
        names = list(known)
        for name in self.options:
            if name not in names:
                meant = suggestion(name, names)
                guess = f"; did you mean `{meant}`?" if meant is not None else ""
                has = f"its options are {', '.join(names)}" if names else "it has none"
                raise WrongAddress(f"`{self}`: there is no option `{name}` here, {has}{guess}")

    def seconds(self, option: str, otherwise: float) -> float:
        """The value of an option that is a number of seconds."""
        given = self.options.get(option)
        try:
            found = otherwise if given is None else float(given)
        except ValueError:
            found = 0.0
        if not 0 < found < 1e6:
            raise WrongAddress(f"`{self}`: `{option}` is a number of seconds, and this is `{given}`")
        return found

    def choice(self, option: str, values: Iterable[str], otherwise: str) -> str:
        """The value of an option that is one of a few."""
        given, known = self.options.get(option, otherwise), list(values)
        if given not in known:
            meant = suggestion(given, known)
            guess = f"; did you mean `{meant}`?" if meant is not None else ""
            raise WrongAddress(f"`{self}`: `{option}` is {' or '.join(known)}, and this is `{given}`{guess}")
        return given


def is_address(name: str) -> bool:
    """Whether a name is an address, whatever of, and no path.

    >>> [is_address(name) for name in ("kafka://127.0.0.1/orders", "delta:orders", "orders.csv")]
    [True, True, False]
    """
    return "://" in name or name[:6].lower() == "delta:"


def beside(name: str, folder: Path | None) -> str:
    """Where a place is that a program in a folder declares: paths are relative to it, and addresses as they are.

    >>> [beside(name, Path("shop")) for name in ("a.csv", "delta:stock?version=3", "mqtt://127.0.0.1/heat")]
    ['shop/a.csv', 'delta:shop/stock?version=3', 'mqtt://127.0.0.1/heat']
    """
    if folder is None:
        return name
    if not is_address(name):
        return str(folder / name)
    path, mark, query = name[6:].partition("?")
    if "://" in name.partition("?")[0] or not path:
        return name
    written = str(folder).replace("%", "%25").replace("?", "%3F")
    return f"{name[:6]}{Path(written) / path}{mark}{query}"


def shown(text: str) -> str:
    """A text that was to be an address, as errors may show it: without what may be a password or another secret.

    >>> shown("kafka://me:word@host/orders?format=csv&token=x")
    'kafka://me:…@host/orders?format=csv&token=…'
    """
    begins, at = _BEGINS.match(text), text.rfind("@")
    colon = text.find(":", begins.end() if begins is not None else 0, at) if at >= 0 else -1
    if colon >= 0:
        text = f"{text[: colon + 1]}…{text[at:]}"
    cut = min((k for k in (text.find("?"), text.find("#")) if k >= 0), default=len(text)) + 1
    options = text[cut:].split("&")
    secret = next((k for k, one in enumerate(options) if _tells_secret(unquote_plus(one))), None)
    if secret is not None:  # what follows may be the rest of it
        options = [*options[:secret], f"{options[secret].partition('=')[0]}=…"]
    return text[:cut] + "&".join(options)


def address(text: str) -> Address:
    """An address from its text; raises `WrongAddress` with what is wrong."""
    if text[:6].lower() == "delta:":
        return _table(text)
    if _has_password(text.partition("://")[2]):
        raise _refused(f"that of `{shown(text)}` does", _variable(text.partition("://")[0].lower()))
    found = _PARTS.fullmatch(text)
    if found is None:
        raise WrongAddress(f"`{shown(text)}` is no address; one is such as kafka://127.0.0.1:9092/orders")
    scheme, where, path, query = found[1].lower(), found[2], found[3] or "", found[4] or ""
    user, at, servers = where.rpartition("@")
    hosts: list[tuple[str, int | None]] = []
    for one in servers.split(",") if servers else ():
        host = _host(one)
        if host is None:
            raise WrongAddress(f"`{shown(text)}`: `{one}` is no host; one is such as 127.0.0.1:9092")
        hosts.append(host)
    options = _options(text, query, scheme)
    name = _OTHER_NAMES.get(scheme, scheme)
    return Address(text, name, unquote(user) if at else None, tuple(hosts), unquote(path), options)


def _host(text: str) -> tuple[str, int | None] | None:
    """A host and its port, if that is said; None for what is none."""
    found = _HOST.fullmatch(text)
    if found is None or (found[2] is not None and not 0 < int(found[2]) < 65_536):
        return None
    return found[1], None if found[2] is None else int(found[2])


def _has_password(text: str) -> bool:
    """Whether what stands behind `://` names a password: between a colon and an `@`, whatever characters it has.

    One with `/`, `?` or `#` looks like the end of the hosts; but what stands before that is no host with its port.
    """
    before = text.rpartition("@")[0]
    hosts = re.split(r"[/?#]", before, maxsplit=1)[0]
    user, _, servers = hosts.rpartition("@")
    if ":" not in hosts:
        return False
    return hosts == before or ":" in user or any(_host(one) is None for one in servers.split(","))


def _refused(what: str, way_out: str) -> WrongAddress:
    return WrongAddress(f"an address holds no password, and {what}; leave it out, and set {way_out}")


def _variable(scheme: str) -> str:
    return PASSWORDS.get(scheme, "the environment variable that the connector names")


def _table(text: str) -> Address:
    """The address of a table: behind `delta:` stands its path, or its place in a store such as `s3://bucket/table`."""
    if _has_password(text.partition("://")[2]):
        raise _refused("that of a table does", "the environment variables of its store")
    found = _TABLE.fullmatch(text)
    path = "" if found is None else found[1].removeprefix("//") if found[1].startswith("///") else found[1]
    if found is None or path.startswith("//") or not path.strip("/"):
        raise WrongAddress(
            f"`{shown(text)}` is no address of a table; one is such as delta:shop/orders, delta:/data/orders "
            "or delta:s3://bucket/orders"
        )
    options = _options(text, found[2] or "", "delta")
    return Address(text, "delta", None, (), path if _STORE.match(path) is not None else unquote(path), options)


def _options(text: str, query: str, scheme: str) -> dict[str, str]:
    """What stands behind the question mark."""
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    except ValueError:
        raise WrongAddress(f"`{shown(text)}`: options are written ?name=value&name=value") from None
    secret = next((name for name in options if _is_secret(name)), None)
    if secret is not None:
        raise _refused(f"an option of `{shown(text)}` is `{secret}`", _variable(scheme))
    return options


def _tells_secret(option: str) -> bool:
    """Whether an option, as far as it can be read, may be a secret."""
    return _is_secret(option) or _is_secret(option.partition("=")[0])


def _is_secret(name: str) -> bool:
    """Whether the name of an option says that its value is a secret."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return plain in _SHORT_SECRETS or any(word in plain for word in _SECRETS)


PORTS = {"kafka": 9092, "postgresql": 5432, "mqtt": 1883}
"""Where systems listen, if an address does not say."""
ENCRYPTED_PORTS = {"mqtt": 8883}
"""Where they do if the connection is encrypted, and that is elsewhere."""
PASSWORDS = {
    "kafka": "EPHEMERA_KAFKA_PASSWORD",
    "mqtt": "EPHEMERA_MQTT_PASSWORD",
    "postgresql": "PGPASSWORD",
    "http": "EPHEMERA_HTTP_AUTHORIZATION",
    "https": "EPHEMERA_HTTP_AUTHORIZATION",
}
"""The environment variables that hold the secrets of systems."""


def secret_of(scheme: str) -> str | None:
    """What the environment holds for a system, if anything."""
    return os.environ.get(PASSWORDS[scheme]) or None
