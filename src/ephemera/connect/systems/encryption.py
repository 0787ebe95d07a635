"""This module says whether a connection is encrypted, and by whose authority: no secret is sent as it is unasked.

An address says `tls=yes` or `tls=no`, and `ca=path` for the certificate of an authority of one's own. If it says
nothing a connection is in the clear, and so it takes no secret, unless it stays on this machine.
"""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

from ephemera.connect.systems.address import Address, WrongAddress

ENCRYPTION = ("tls", "ca")
"""The options of addresses that say so."""


def is_loopback(host: str) -> bool:
    """Whether what is sent to a host stays on this machine.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "[::1]", "broker.example.org", "10.0.0.7")]
    [True, True, True, False, False]
    """
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def is_encrypted(address: Address, *, has_secret: bool) -> bool:
    """Whether a connection is; raises what is wrong with how the address says so."""
    tls = address.choice("tls", ("yes", "no"), "no") == "yes"
    authority = address.options.get("ca")
    if authority is not None and not tls:
        raise WrongAddress(f"`{address}`: `ca` is for encrypted connections; add tls=yes")
    if authority is not None and not Path(authority).is_file():
        raise WrongAddress(
            f"`{address}`: there is no file {authority}, which should hold the certificate of an authority"
        )
    if has_secret and "tls" not in address.options and not all(is_loopback(host) for host, _ in address.hosts):
        raise WrongAddress(
            f"`{address}` would send a password in the clear: add tls=yes, or tls=no if the network may read it"
        )
    return tls
