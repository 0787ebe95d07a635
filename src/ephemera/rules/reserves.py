"""This module reads which events are kept whole for rules that come later, and says what cannot be kept so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping

from ephemera.base.diagnostic import Code, Help, Related
from ephemera.base.span import Span
from ephemera.rules.findings import Findings
from ephemera.rules.nodes import Schema
from ephemera.syntax.nodes import Program, Reserve
from ephemera.terms.nodes import Duration


def read_reserves(
    program: Program,
    events: Mapping[str, Schema],
    derived: Container[str],
    length_of: Callable[[Duration], int],
    findings: Findings,
) -> dict[str, int]:
    """For each type how long its events are kept; only declared ones that come from outside can be."""
    found: dict[str, int] = {}
    first: dict[str, Span] = {}
    for declared in (s for s in program.statements if isinstance(s, Reserve)):
        label = str(declared.label)
        length = length_of(declared.length)
        if label in found:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"`{label}` is reserved twice",
                declared.span,
                related=[Related(first[label], "reserved here before")],
                help=[Help("leave the shorter one out")],
            )
            continue
        first[label] = declared.span
        found[label] = length
        if label in derived:
            findings.add(
                Code.UNKNOWN_EVENT,
                f"`{label}` is derived by rules, and only events from outside can be reserved",
                declared.label.span,
                help=[Help("reserve what these rules read: from that it is derived again")],
            )
        elif events and label not in events:
            _unknown(label, events, declared.label.span, findings)
        elif not length:
            findings.add(
                Code.DURATION,
                f"`{label}` would be reserved for no time at all",
                declared.length.span,
                help=[Help("say how long it is to be kept, as in `RESERVE order 30 days;`")],
            )
    return found


def _unknown(label: str, events: Collection[str], span: Span, findings: Findings) -> None:
    otherwise = f"declare it: `EVENT {label}(…);`"
    advice = findings.did_you_mean(label, events, span, otherwise, what="declared event")
    findings.add(Code.UNKNOWN_EVENT, f"no event `{label}` is declared", span, help=[advice])
