"""This module keeps messages from when they were found until they are delivered, in a folder that outlives a crash.

Whatever finds messages puts all of a commit at once, as one segment file whose name is a number. Putting the same
number again replaces it: a batch that is run again gives the same messages. For each address a position says which
messages have been dealt with, and a segment that all addresses are behind is removed. Nothing is ever dropped: an
outbox that is full says so, and whoever reads events has to wait.

    outbox/
      000000000012.messages    a line for each message, in the order of their ends
      positions/ADDRESS.json   up to where one address has been served
      dead/KEY.json            what could not be delivered, with the reason
      again/                   an outbox of what is sent again though it was dead
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from ephemera.deliver.message import Outgoing, in_order, read_line
from ephemera.engine.state.durable_files import Broken, Files, Mark, files_of, seal, unseal
from ephemera.terms.addresses import Address

LIMIT = 64 << 20
"""Bytes of messages that may wait, unless somebody says otherwise."""
POSITION, DEAD = "position in an outbox", "dead message"
FORMAT = 1
_SEGMENT = re.compile(r"(\d{12})\.messages")
_WAY_OUT = "bring it back from a copy, or remove it: then what it covers is sent again, with the same keys"

Place = tuple[int, int]
"""A segment, and how many of its lines are behind one."""


def unmarked(step: str) -> None:
    """Nobody looks at the steps."""


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A message that could not be delivered, and why."""

    message: Outgoing
    reason: str
    attempts: int


@dataclass(slots=True)
class Outbox:
    """Messages that wait, in a folder; `limit` is how many bytes of them may."""

    folder: str
    limit: int = LIMIT
    mark: Mark = unmarked
    """Is told of each step before it is taken."""
    files: Files | None = None
    _path: str = field(init=False)
    _sizes: dict[int, int] = field(init=False, default_factory=dict)
    """The segments that are there, and their bytes."""
    _left: set[int] = field(init=False, default_factory=set)
    """Those among them that nobody is sent in this run: they stay, and take no room."""
    _served: dict[Address, Place] = field(init=False, default_factory=dict)
    _next: int = field(init=False, default=0)
    """Behind all segments that ever were, as far as positions tell."""
    _room: threading.Condition = field(init=False, default_factory=lambda: threading.Condition(threading.RLock()))

    def __post_init__(self) -> None:
        files, self._path = files_of(self.folder)
        self.files = self.files or files
        for folder in ("", "/positions", "/dead"):
            self._files.make(self._path + folder)
        for name in self._files.names(self._path):
            found = _SEGMENT.fullmatch(name)
            if found is not None:
                self._sizes[int(found[1])] = len(self._files.read(f"{self._path}/{name}"))
        self._served = self._positions()
        self._next = max([*self._sizes, *(segment for segment, _ in self._served.values())], default=-1) + 1

    @property
    def _files(self) -> Files:
        if self.files is None:
            raise Broken("an outbox without files")
        return self.files

    @property
    def next(self) -> int:
        """Behind all segments that ever were."""
        return self._next

    # ---- messages in ---------------------------------------------------------------------------------------

    def put(self, messages: Iterable[Outgoing], number: int | None = None) -> int | None:
        """All messages of a commit, durably when this returns; the number of the segment, if there were any.

        Whoever counts commits gives their number. One that is put again replaces what it put before.
        """
        ordered = in_order(messages)
        if number is None:
            number = self._next
        if not ordered:
            if number in self._sizes:
                self._remove(number)
            return None
        data = b"".join(message.line() for message in ordered)
        self._files.put(f"{self._path}/{number:012d}.messages", [data], lambda step: self.mark(f"segment {step}"))
        with self._room:
            self._sizes[number] = len(data)
            self._left.discard(number)
            self._next = max(self._next, number + 1)
        return number

    def discard_after(self, number: int) -> None:
        """Removes segments of commits that never were."""
        for one in [n for n in self._sizes if n > number]:
            self._remove(one)

    def has_room(self) -> bool:
        """Whether more may come in."""
        return self.size < self.limit

    def wait_for_room(self, timeout: float | None = None) -> bool:
        """Holds up whoever finds messages, as long as the outbox is full."""
        with self._room:
            return self._room.wait_for(self.has_room, timeout)

    @property
    def size(self) -> int:
        """Bytes of segments that somebody is still sent."""
        with self._room:
            return sum(size for number, size in self._sizes.items() if number not in self._left)

    # ---- messages out --------------------------------------------------------------------------------------

    def segments(self, until: int | None = None) -> list[int]:
        """The segments that are there, in order; `until` leaves out those behind it."""
        with self._room:
            return sorted(n for n in self._sizes if until is None or n <= until)

    def read(self, number: int) -> Iterator[tuple[Place, Outgoing]]:
        """The messages of a segment, each with the place behind it."""
        path = f"{self._path}/{number:012d}.messages"
        data = bytes(self._files.read(path))
        for row, line in enumerate(data.splitlines(), 1):
            try:
                yield (number, row), read_line(line)
            except (ValueError, TypeError):
                raise Broken(f"{path} is damaged in line {row}; {_WAY_OUT}") from None

    def position(self, address: Address) -> Place:
        """Up to where an address has been served."""
        return self._served.get(address, (-1, 0))

    def _positions(self) -> dict[Address, Place]:
        found: dict[Address, Place] = {}
        for name in self._files.names(f"{self._path}/positions"):
            if name.startswith("."):
                continue
            path = f"{self._path}/positions/{name}"
            told = unseal(bytes(self._files.read(path)), POSITION, FORMAT, path, _WAY_OUT)
            found[told["recipient"], told["transport"]] = (told["segment"], told["row"])
        return found

    def advance(self, address: Address, place: Place) -> None:
        """An address has been served up to there."""
        told = {"recipient": address[0], "transport": address[1], "segment": place[0], "row": place[1]}
        path = f"{self._path}/positions/{_name(address)}.json"
        self._files.put(path, [seal(POSITION, FORMAT, told)], lambda step: self.mark(f"position {step}"))
        self._served[address] = place

    def remove(self, number: int) -> None:
        """A segment that everybody is behind."""
        self.mark("segment remove")
        self._remove(number)

    def leave(self, number: int) -> None:
        """A segment that waits for another run, which sends to others."""
        with self._room:
            self._left.add(number)
            self._room.notify_all()

    def _remove(self, number: int) -> None:
        self._files.remove(f"{self._path}/{number:012d}.messages")
        with self._room:
            self._sizes.pop(number, None)
            self._left.discard(number)
            self._room.notify_all()

    # ---- what could not be delivered -----------------------------------------------------------------------

    def bury(self, dead: DeadMessage) -> None:
        """Keeps a message that could not be delivered; the same one is kept once."""
        message = dead.message
        told: dict[str, Any] = {
            "reason": dead.reason,
            "attempts": dead.attempts,
            "key": message.key,
            "recipient": message.recipient,
            "transport": message.transport,
            "begin": message.begin,
            "end": message.end,
            "message": message.body,
        }
        path = f"{self._path}/dead/{message.key}.json"
        self._files.put(path, [seal(DEAD, FORMAT, told)], lambda step: self.mark(f"dead {step}"))

    def dead(self) -> list[DeadMessage]:
        """All that could not be delivered, in order."""
        found: list[DeadMessage] = []
        for name in self._files.names(f"{self._path}/dead"):
            if not name.endswith(".json") or name.startswith("."):
                continue
            path = f"{self._path}/dead/{name}"
            told = unseal(bytes(self._files.read(path)), DEAD, FORMAT, path, "remove it, or bring it back from a copy")
            where = (told["recipient"], told["transport"])
            message = Outgoing(told["key"], told["begin"], told["end"], *where, told["message"])
            found.append(DeadMessage(message, told["reason"], told["attempts"]))
        return sorted(found, key=lambda d: (d.message.end, d.message.begin, d.message.key))

    def revive(self, is_wanted: Callable[[Address], bool] = lambda _: True) -> Outbox:
        """An outbox with what could not be delivered and is wanted, to be sent again; what fails again is dead there.

        The letters go when they are in that one: a crash between the two sends some of them twice, and loses none.
        What an earlier attempt has left there comes back first.
        """
        again = Outbox(f"{self._path}/again", self.limit, self.mark, self.files)
        again.give_back(self)
        letters = [letter for letter in self.dead() if is_wanted(letter.message.address)]
        again.put([letter.message for letter in letters])
        for letter in letters:
            self._unbury(letter)
        return again

    def give_back(self, other: Outbox) -> None:
        """Buries all that is dead here in another outbox."""
        for letter in self.dead():
            other.bury(letter)
            self._unbury(letter)

    def _unbury(self, letter: DeadMessage) -> None:
        self.mark("dead remove")
        self._files.remove(f"{self._path}/dead/{letter.message.key}.json")


def _name(address: Address) -> str:
    """A file name for an address, whatever it holds."""
    hashed = blake2b(digest_size=16)
    for part in address:
        text = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:%s" % (len(text), text))
    return hashed.hexdigest()
