"""This module shows messages on standard error, a line each: standard output has the answers.

Signs that a terminal would not show but obey, and line breaks of any kind, are escaped, as JSON can.
"""

from __future__ import annotations

import json
import sys

from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import Settings, TryLater


class Console:
    """The terminal."""

    def __init__(self, settings: Settings) -> None:
        del settings

    def send(self, message: Outgoing) -> None:
        try:
            sys.stderr.write(f"to {_shown(message.recipient)}: {_shown(message.text())}\n")
            sys.stderr.flush()
        except (OSError, ValueError) as error:
            raise TryLater(f"the console cannot be written to: {error}") from None

    def close(self) -> None:
        """It stays open."""


def _shown(text: str) -> str:
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)
