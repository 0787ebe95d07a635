"""This module runs a command for each message, which it gets on its standard input as a line of JSON.

The command is a list of arguments that stands in the program. No shell reads it, and nothing of a message is ever an
argument. Exit code 0 says that the message was taken; 75, by which mailers say so, that it should come later.
"""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from typing import IO

from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import TIMEOUT, Refused, Settings, TryLater

LATER = 75
_BUSY = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC)
"""What this machine lacks at times, for which no message is to blame."""
_SHOWN = 200


class Command:
    """A command of this machine; runs only where that was allowed."""

    def __init__(self, settings: Settings) -> None:
        argv = settings.get("argv")
        if not isinstance(argv, tuple) or not argv:
            raise Refused('`command` needs its arguments: TRANSPORT … IS command(argv=["notify", "--urgent"]);')
        self._argv = list(argv)
        self._timeout = float(settings.get("timeout", TIMEOUT))

    def send(self, message: Outgoing) -> None:
        line = message.text().encode("utf-8", "backslashreplace") + b"\n"
        try:
            # No pipes to read from: what the command leaves running in the background would keep them open.
            with tempfile.TemporaryFile() as errors:
                done = subprocess.run(
                    self._argv,
                    input=line,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    timeout=self._timeout,
                    check=False,
                    shell=False,
                )
                told = _end_of(errors)
        except subprocess.TimeoutExpired:
            raise TryLater(f"`{self._argv[0]}` did not end in {self._timeout:g} seconds") from None
        except OSError as error:
            if error.errno in _BUSY:
                raise TryLater(f"`{self._argv[0]}` cannot be run now: {error.strerror}", is_down=True) from None
            raise Refused(f"`{self._argv[0]}` cannot be run: {error.strerror}") from None
        if done.returncode:
            reason = f"`{self._argv[0]}` ended with {done.returncode}" + (f": {told}" if told else "")
            raise TryLater(reason, is_down=done.returncode == LATER)

    def close(self) -> None:
        """Each command has ended."""


def _end_of(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _SHOWN))
    return file.read(_SHOWN).decode("utf-8", "replace").strip()
