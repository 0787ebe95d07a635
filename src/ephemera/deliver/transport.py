"""This module says what a transport is: something that sends a message, or says why not and whether to try again.

A transport of somebody else is a class with two methods, `send` and `close`, which is called with its settings; its
package names it by an entry point of the group `ephemera.transports`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeAlias
from urllib.parse import quote

from ephemera.base.errors import EphemeraError
from ephemera.base.lazy_dataclass import dataclass
from ephemera.deliver.message import Outgoing

RETRIES = 8
"""Attempts after the first, unless a declaration says otherwise."""
TIMEOUT = 10.0
"""Seconds that an attempt may take."""


class Refused(EphemeraError):
    """The message will never be taken: it becomes a dead letter at once."""


class NotDelivered(EphemeraError):
    """Messages that cannot be delivered, whatever they are."""


class TryLater(EphemeraError):
    """The message was not taken this time.

    `after` is what the recipient asks for, in seconds. An attempt counts if the message itself may be to blame; where
    the recipient `is_down`, or says that it is busy, it does not, and no message is given up for that.
    """

    def __init__(self, reason: str, *, after: float | None = None, is_down: bool = False) -> None:
        super().__init__(reason)
        self.after = after
        self.is_down = is_down


class Transport(Protocol):
    """Sends messages; those to different recipients in several threads at once."""

    def send(self, message: Outgoing) -> None:
        """Sends a message; it has been taken when this returns. Raises `Refused` or `TryLater` if not."""

    def close(self) -> None:
        """Frees what it holds."""


Settings: TypeAlias = Mapping[str, Any]
"""What a declaration says: texts, numbers, lists of texts; durations in seconds; secrets as they are now."""
Make: TypeAlias = Callable[[Settings], Transport]
HIDDEN = "***"
"""Stands for a secret in whatever is told."""


def hidden(text: str, secrets: Collection[str]) -> str:
    r"""A text without secrets, also where it shows them as Python or a URL would write them.

    >>> hidden("invalid literal for int(): 'sword\\nfish'", ["sword\nfish"])
    "invalid literal for int(): '***'"
    """
    forms = {form for s in secrets for form in (s, s.strip(), repr(s)[1:-1], quote(s, safe="", errors="replace"))}
    for form in sorted(forms - {""}, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


@dataclass(frozen=True, slots=True)
class Way:
    """How messages get to an address."""

    transport: Transport
    retries: int = RETRIES
    secrets: tuple[str, ...] = ()

    def hide(self, text: str) -> str:
        """A text without secrets."""
        return hidden(text, self.secrets)
