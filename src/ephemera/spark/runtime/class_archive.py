"""This module keeps the classes that Spark loads in an archive, so that Java need not read them anew at every start.

Java checks by itself whether an archive is of its own version and class path, and starts without one that is not. A
run that finds none asks Java to write one when it ends, which takes a while and is nobody's business: the command is
over by then, and Java has let go of its output. Short runs and long ones have an archive each, since they load other
classes. What cannot be made is done without.

Java writes the beginning of an archive last. So a file that begins as one is whole, and gets its name at the next
start; one that does not is being written, or was given up, and for a day nobody tries again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Literal

import pyspark

from ephemera.spark.runtime.java import Java, cache

Length = Literal["short", "long"]
"""How long a run is likely to last; which says how Java should run it, too."""
SWITCH = "EPHEMERA_JAVA_ARCHIVE"
"""The variable that switches archives off."""
_AHEAD = 25
"""From this version on Java prepares more than classes, under other names."""
_MAGIC = {(number).to_bytes(4, "little") for number in (0xF00BABA2, 0xF00BABA8)}
"""How archives begin, whole ones and those that build on Java's own."""
_NEW = ".new"
_DAY = 86_400.0
_UNUSED = 60 * _DAY
"""Seconds after which an archive goes that nobody has used."""
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""What is run a few times is not worth the better compiler, nor the threads of the better collector."""
_SILENT = "-Xlog:disable"
"""Nothing is said of archives that do not fit: it would stand among the answers."""


@dataclass(frozen=True, slots=True)
class Start:
    """How Java is started: with which options, and whether it writes an archive at its end."""

    options: tuple[str, ...] = ()
    makes: bool = False


def start_of(java: Java, length: Length, *, may_make: bool) -> Start:
    """How Java is started for a run; `may_make` says that nobody is waiting for Java to end."""
    quick = _QUICK if length == "short" else ()
    if os.environ.get(SWITCH) == "off" or os.name == "nt":
        return Start(quick)
    folder = cache()
    if folder is None:
        return Start(quick)
    with suppress(OSError):
        archive = folder / f"classes-{length}-{_key(java)}"
        if _is_there(archive):
            used = "AOTCache" if java.version >= _AHEAD else "SharedArchiveFile"
            return Start((*quick, _SILENT, f'"-XX:{used}={archive}"'))
        if may_make and not any(_made(archive)):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = archive.with_name(f"{archive.name}.{token_hex(4)}{_NEW}")
            new.touch()
            made = "AOTCacheOutput" if java.version >= _AHEAD else "ArchiveClassesAtExit"
            return Start((*quick, _SILENT, f'"-XX:{made}={new}"'), makes=True)
    return Start(quick)


def _key(java: Java) -> str:
    """What an archive depends on; Java looks closer."""
    parts = (str(java.program.resolve()), str(java.version), str(Path(pyspark.__file__).parent), pyspark.__version__)
    return sha256("\0".join(parts).encode()).hexdigest()[:12]


def _is_there(archive: Path) -> bool:
    """Whether there is an archive; one that was written since gets its name."""
    for new in _made(archive):
        if _is_whole(new):
            new.replace(archive)
            _remove_unused(archive.parent)
        elif _age(new) > _DAY:
            new.unlink(missing_ok=True)
    if not archive.is_file():
        return False
    os.utime(archive)
    return True


def _made(archive: Path) -> Iterator[Path]:
    """What is being written, or was."""
    return archive.parent.glob(f"{archive.name}.*{_NEW}")


def _is_whole(new: Path) -> bool:
    with new.open("rb") as file:
        return file.read(4) in _MAGIC


def _age(file: Path) -> float:
    return time.time() - file.stat().st_mtime


def _remove_unused(folder: Path) -> None:
    for file in folder.glob("classes-*"):
        if _age(file) > _UNUSED:
            file.unlink(missing_ok=True)
