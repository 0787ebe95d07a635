"""This module names the targets of a run, so that each is known again by who goes on, in whatever order it names them.

A target is known by where it writes: its address without the options that only say how. Of that is made what a system
remembers the last commit of the run under. Where several targets write to one place, as two types of answers with
different keys to one topic, they have their whole addresses. The answers that a checkpoint keeps for a target are
encoded, so they are for one that encodes them alike.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from ephemera.connect.systems.address import Address, WrongAddress
from ephemera.connect.systems.file_target import FileTarget
from ephemera.connect.systems.live import Target

_SAYING_WHERE: dict[str, tuple[str, ...]] = {"kafka": (), "mqtt": (), "delta": (), "postgresql": ("table",)}
"""For systems the options that say where; in the addresses of others, such as those of HTTP, all may."""
_SAYING_HOW = ("key",)
"""The options by which answers are encoded."""


@dataclass(frozen=True, slots=True)
class TargetName:
    """What a target is known by."""

    place: str
    form: str = ""
    """How answers are encoded, if the address says so."""

    def __str__(self) -> str:
        return f"{self.place} ({self.form})" if self.form else self.place

    def identity(self, run: str) -> str:
        """What the target remembers the last commit of a run under."""
        return f"{run}-{hashlib.sha256(self.place.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


def target_names(targets: Sequence[Target]) -> list[TargetName]:
    """What each target is known by; raises if two are the same."""
    names = [_name(target) for target in targets]
    shared = Counter(name.place for name in names)
    names = [
        name if shared[name.place] == 1 else TargetName(target.name)
        for name, target in zip(names, targets, strict=True)
    ]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise WrongAddress(f"answers go to `{twice}` twice; name it once")
    return names


def _name(target: Target) -> TargetName:
    if isinstance(target, FileTarget):
        return TargetName(f"file {target.name}")
    address = getattr(target, "address", None)  # targets of systems have one, and functions none
    if not isinstance(address, Address) or address.scheme not in _SAYING_WHERE:
        return TargetName(target.name)
    _, colon, where = address.text.partition("?")[0].partition(":")
    place, form = (
        urlencode({name: address.options[name] for name in names if name in address.options})
        for names in (_SAYING_WHERE[address.scheme], _SAYING_HOW)
    )
    return TargetName(f"{address.scheme}{colon}{where}{'?' if place else ''}{place}", form)
