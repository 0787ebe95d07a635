"""Ephemera finds complex events: situations that show only in several events over time, and in absences.

Names are loaded when they are first used, so that `import ephemera` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ephemera import sinks, sources
    from ephemera.base.diagnostic import Diagnostic, Report
    from ephemera.base.errors import EphemeraError, EphemeraWarning, ProgramError
    from ephemera.engine.hosts.live_engine import LiveEngine as Engine
    from ephemera.formats.answer_list import Answers
    from ephemera.language import check, compile, format, load
    from ephemera.program import Program
    from ephemera.rules.outcome import DeadLetter
    from ephemera.spark.live.query import LiveQuery as Query
    from ephemera.terms.events import Event

__version__ = "0.1.0"
__all__ = [
    "Answers",
    "DeadLetter",
    "Diagnostic",
    "Engine",
    "EphemeraError",
    "EphemeraWarning",
    "Event",
    "Program",
    "ProgramError",
    "Query",
    "Report",
    "__version__",
    "check",
    "compile",
    "format",
    "load",
    "sinks",
    "sources",
]
_HOMES = {
    "Answers": "formats.answer_list",
    "DeadLetter": "rules.outcome",
    "Diagnostic": "base.diagnostic",
    "Engine": "engine.hosts.live_engine:LiveEngine",
    "EphemeraError": "base.errors",
    "EphemeraWarning": "base.errors",
    "Event": "terms.events",
    "Program": "program",
    "ProgramError": "base.errors",
    "Query": "spark.live.query:LiveQuery",
    "Report": "base.diagnostic",
    "check": "language",
    "compile": "language",
    "format": "language",
    "load": "language",
}
"""The module in which each public name is defined, and what it is called there if that is something else."""


if not TYPE_CHECKING:  # or any name would do for type checkers

    def __getattr__(name: str) -> Any:
        if name in ("sinks", "sources"):
            return import_module(f"ephemera.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module `ephemera` has no attribute `{name}`")
        home, _, own = _HOMES[name].partition(":")
        if home.startswith("spark."):
            import_module("ephemera.base.installed").need_spark(who=f"`ephemera.{name}`")
        value = getattr(import_module(f"ephemera.{home}"), own or name)
        globals()[name] = value  # found at once from now on
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
