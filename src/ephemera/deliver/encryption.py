"""This module says whether a transport encrypts what it sends, and by whose authority; no secret goes out as it is.

`tls=true` or `tls=false` says so, and `ca="path"` names the certificate of an authority of one's own. A secret that
would leave this machine in the clear is refused, unless `tls=false` stands there.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ephemera.connect.systems.encryption import is_loopback
from ephemera.deliver.transport import Refused, Settings


def authority_of(kind: str, settings: Settings, *, tls: bool) -> str | None:
    """The file of an authority's certificate, if one is named; raises what is wrong with that."""
    authority = settings.get("ca")
    if authority is None:
        return None
    if not tls:
        raise Refused(f"`ca` of `{kind}` is for encrypted connections: add tls=true")
    if not Path(authority).is_file():
        raise Refused(
            f"`ca` of `{kind}`: there is no file {authority}, which should hold the certificate of an authority"
        )
    return str(authority)


def check_secret(kind: str, settings: Settings, hosts: Iterable[str], *, tls: bool) -> None:
    """Raises what is wrong if a secret would leave this machine in the clear."""
    if settings.get("secret") is None or tls or "tls" in settings or all(map(is_loopback, hosts)):
        return
    raise Refused(f"`{kind}` would send its secret in the clear: add tls=true, or tls=false if the network may read it")
