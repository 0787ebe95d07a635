"""Ephemera finds complex events: situations that show only in several events over time, and in absences."""

from ephemera.base.diagnostic import Diagnostic, Report
from ephemera.base.errors import EphemeraError, EphemeraWarning, ProgramError
from ephemera.pipeline import Program, compile

__all__ = ["Diagnostic", "EphemeraError", "EphemeraWarning", "Program", "ProgramError", "Report", "compile"]
