"""This module appends messages to a file, a line of JSON each, durably when `send` returns.

What is no file but only looks like one, such as a terminal or a pipe, has nothing that could be made durable.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from threading import Lock

from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import Refused, Settings, TryLater


class AppendedFile:
    """A file to which lines are added; a line that a crash has cut off is ended, so that the next is whole."""

    def __init__(self, settings: Settings) -> None:
        if not settings.get("path"):
            raise Refused('`file` needs a path: TRANSPORT … IS file(path="…");')
        self._path = Path(settings["path"])
        self._file: int | None = None
        self._is_kept = True
        self._lock = Lock()

    def send(self, message: Outgoing) -> None:
        line = message.text().encode("utf-8", "backslashreplace") + b"\n"
        with self._lock:
            try:
                self._append(line)
            except OSError as error:
                self.close()
                raise TryLater(f"cannot write {self._path}: {error.strerror}", is_down=True) from None

    def _append(self, line: bytes) -> None:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            about = os.fstat(self._file)
            self._is_kept = stat.S_ISREG(about.st_mode)
            size = about.st_size if self._is_kept else 0
            line = line if not size or os.pread(self._file, 1, size - 1) == b"\n" else b"\n" + line
        if os.write(self._file, line) < len(line):  # the disk is full; the next line ends what was cut
            raise OSError(errno.ENOSPC, "No space left on device")
        if self._is_kept:
            os.fsync(self._file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
