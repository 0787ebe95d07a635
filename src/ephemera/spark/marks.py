"""This module tells a listener of each step that a live query comes to, so that it can be stopped or killed just there.

The environment variable `EPHEMERA_MARKS` names the socket of the listener. Whoever comes to a step says who it is and
which step it is, and goes on when the listener hangs up. Without the variable nothing is done.
"""

from __future__ import annotations

import os
import socket

MARKS = "EPHEMERA_MARKS"

_PUT = ("write", "sync", "rename", "folder sync")
IN_WORKERS = (
    "read",
    "engines",
    *("segment write", "segment sync", "segment rename", "folder sync", "remove"),
    "gather",
    *(f"answers {step}" for step in _PUT),
    *(f"letters {step}" for step in _PUT),
)
"""The steps of a batch that workers do, in their order. What is removed are segments that nothing needs any more."""
IN_DRIVER = (
    *("batch begins", "open", "plan", "settle"),
    *(f"ledger {step}" for step in _PUT),
    *("ledger tidy", "batch done"),
)
"""The steps that the driver does; it opens and settles folders with the first batch of a start.

Where answers go to a table, `table write` comes before the ledger.
"""


def mark(step: str) -> None:
    """This process comes to a step."""
    name = os.environ.get(MARKS)
    if name:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(name)
            line.sendall(f"{os.getpid()} {step}\n".encode())
            line.recv(1)
