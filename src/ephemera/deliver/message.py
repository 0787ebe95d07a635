"""This module defines a message on its way out, and how it is stored: one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.addresses import Address


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message that was found and is to be delivered."""

    key: str
    """The same for the same message, whichever engine found it and how often: receivers drop repeats by it."""
    begin: int
    end: int
    """When it happens, in microseconds."""
    recipient: str
    transport: str
    body: Mapping[str, Any]
    """What is sent, as JSON has it."""

    @property
    def address(self) -> Address:
        """Where it goes."""
        return self.recipient, self.transport

    def text(self) -> str:
        """What receivers get: the answer as everywhere, with its key."""
        return json.dumps({**self.body, "key": self.key}, ensure_ascii=False)

    def line(self) -> bytes:
        """How it is stored."""
        told = [self.key, self.begin, self.end, self.recipient, self.transport, self.body]
        return json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def read_line(line: bytes) -> Outgoing:
    """A message as it was stored."""
    return Outgoing(*json.loads(line.decode("utf-8", "surrogatepass")))


def in_order(messages: Iterable[Outgoing]) -> list[Outgoing]:
    """Messages by their ends, each once."""
    once = {message.key: message for message in messages}
    return sorted(once.values(), key=lambda m: (m.end, m.begin, m.key))
