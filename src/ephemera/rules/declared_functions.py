"""This module reads the functions that a program declares, and says which of them cannot be."""

from __future__ import annotations

import re

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.span import Span
from ephemera.rules.findings import Findings
from ephemera.rules.functions import FUNCTIONS
from ephemera.syntax.nodes import DeclaredFunction, Program
from ephemera.terms.user_functions import UserFunction

_PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_WAY = 'say which function of which module it is, as in `FROM "geo.distances:haversine"`'


def read_functions(program: Program, findings: Findings) -> dict[str, UserFunction]:
    """The declared functions by their names."""
    found: dict[str, UserFunction] = {}
    first: dict[str, Span] = {}
    for declared in (s for s in program.statements if isinstance(s, DeclaredFunction)):
        if declared.name in FUNCTIONS:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"`{declared.name}` is a function of the language",
                declared.span,
                help=[Help("give yours another name")],
            )
        elif declared.name in found:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"the function `{declared.name}` is declared twice",
                declared.span,
                related=[Related(first[declared.name], "declared here before")],
                help=[Help("leave one of them out", (Edit(declared.span, ""),))],
            )
        elif not _PLACE.fullmatch(declared.place):
            findings.add(
                Code.UNKNOWN_FUNCTION,
                f"`{declared.place}` is no function of a module",
                declared.span,
                help=[Help(_WAY)],
            )
        else:
            first[declared.name] = declared.span
            found[declared.name] = UserFunction(declared.name, declared.takes, declared.gives, declared.place)
    return found
