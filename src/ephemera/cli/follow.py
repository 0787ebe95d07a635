"""This module follows a file as it grows, also where logs are rotated: emptied in place, or replaced by another file.

Files have no memory of that, so it is seen by what can be seen: the file is shorter than what was read of it, the last
bytes that were read are not there any more, or the name leads to another file. What had been written to the old one is
read to its end first. The new content is read from its beginning, and that is told.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from ephemera.cli.files import tell

_TAIL = 64
"""Bytes by which the place is known again."""


class FollowedFile:
    """A file that may grow for ever, and what has taken its place."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self.file = file
        """The one that is read now."""
        self._tail = b""

    def note(self, data: bytes) -> None:
        """Some bytes have been read."""
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]

    def begins_anew(self) -> bool:
        """Whether there is new content instead of what was read; then it is read from its beginning."""
        number = self.file.fileno()
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return False
        place = os.lseek(number, 0, os.SEEK_CUR)
        if self._is_cut(number, place):
            os.lseek(number, 0, os.SEEK_SET)
            self._tail = b""
            tell(f"{self._path} was emptied and begins anew; it is read from its beginning")
            return True
        return self._is_replaced(number, place)

    def close(self) -> None:
        """Nobody reads any more."""
        self.file.close()

    def _is_cut(self, number: int, place: int) -> bool:
        if os.fstat(number).st_size < place:
            return True
        # It may have grown beyond the old place since: then something else stands before that.
        return os.pread(number, len(self._tail), place - len(self._tail)) != self._tail

    def _is_replaced(self, number: int, place: int) -> bool:
        try:
            if os.path.samestat(self._path.stat(), os.fstat(number)):
                return False
            new = self._path.open("rb")
        except OSError:  # the next one is not there yet
            return False
        if os.fstat(number).st_size > place:  # asked last: all that was written before the change is read first
            new.close()
            return False
        self.file.close()
        self.file, self._tail = new, b""
        tell(f"{self._path} is another file now; it is read from its beginning")
        return True
