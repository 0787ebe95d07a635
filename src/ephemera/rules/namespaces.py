"""This module reads the namespaces of a program, and spells its labels with the first prefix of each.

A prefix that is not declared is a part of the label's text. That is told once for each, for mostly a namespace is
meant. It is not told of prefixes that are seen to name calendars, which need no declaration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.span import Span
from ephemera.base.tree import rebuild, walk
from ephemera.rules.findings import Findings
from ephemera.syntax.nodes import Event, InCalendar, Namespace, Program
from ephemera.syntax.queries import TIMER_PREFIXES
from ephemera.terms.namespaces import XML_PREFIX, Namespaces, namespaces
from ephemera.terms.nodes import Atom, Element, Label, NamedAtom

_RESERVED = (*TIMER_PREFIXES, XML_PREFIX, "xmlns")


def read_namespaces(program: Program, findings: Findings) -> Namespaces:
    """What the program declares, with what is wrong with it."""
    found: dict[str, Namespace] = {}
    for declared in (s for s in program.statements if isinstance(s, Namespace)):
        before = found.get(declared.prefix)
        if before is not None:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"the prefix `{declared.prefix}` is declared twice",
                declared.span,
                related=[Related(before.span, "declared here before")],
                help=[Help("remove one of the two", (Edit(declared.span, ""),))],
            )
        elif declared.prefix in _RESERVED:
            findings.add(
                Code.NAMESPACE,
                f"`{declared.prefix}` has a meaning of its own and cannot be a prefix",
                declared.span,
                help=[Help("choose another prefix; documents may use any for the namespace")],
            )
        elif not declared.uri.strip():
            findings.add(
                Code.NAMESPACE,
                f"the namespace of `{declared.prefix}` is empty",
                declared.span,
                help=[Help('write the URI that documents declare, as in `"urn:orders"`')],
            )
        else:
            found[declared.prefix] = declared
    return namespaces({prefix: declared.uri for prefix, declared in found.items()})


def spelled(program: Program, declared: Namespaces) -> Program:
    """The program with one prefix for each namespace."""
    if not declared.others:
        return program

    def change(node: Any) -> Any:
        if not isinstance(node, Label) or not node.prefix:
            return node
        prefix = declared.label(f"{node.prefix}:").removesuffix(":")
        return node if prefix == node.prefix else replace(node, prefix=prefix, span=node.span)

    return rebuild(program, change)


def check_prefixes(program: Program, declared: Namespaces, findings: Findings) -> None:
    """Tells once of each prefix that is not declared, and of those that are read as identifiers."""
    told: set[str] = set()
    for label in _labels(program):
        prefix = label.prefix.removeprefix("@")
        if not prefix or prefix in told or prefix in _RESERVED or declared.declares(prefix):
            continue
        told.add(prefix)
        findings.add(
            Code.PREFIX,
            f"the prefix `{prefix}` is not declared, so it is compared as text",
            label.span,
            severity="warning",
            help=[Help(f'declare the namespace that it stands for: `NAMESPACE {prefix} = "…";`')],
        )
    for node in walk(program) if declared else ():
        if isinstance(node, Event) and node.name is not None and declared.declares(node.name.name):
            name, pattern = node.name, node.pattern
            if name.span.end + 1 == pattern.span.start:
                findings.add(
                    Code.PREFIX,
                    f"`{name.name}` is the identifier of the event here, and not the prefix of its label",
                    Span(name.span.start, pattern.span.start),
                    severity="warning",
                    help=[
                        Help(
                            f"for the namespace write `_: {name.name}:…`",
                            (Edit(Span(name.span.start, name.span.start), "_: "),),
                        ),
                        Help(f"for the identifier write `{name.name}: …`"),
                    ],
                )


def _labels(program: Program) -> Iterator[Label]:
    """The labels in the order of the text, without those of calendars: prefixes of events that have no content."""
    calendars: set[str] = set()
    found: list[Label] = []
    for node in walk(program):
        match node:
            case Event(_, Atom(label, ()) | NamedAtom(label, ()) | Element(Label() as label, _, _, ())):
                calendars.add(label.prefix)
            case InCalendar(_, label):
                calendars.add(label.prefix)
            case Label():
                found.append(node)
            case _:
                continue
    yield from sorted((one for one in found if one.prefix not in calendars), key=lambda label: label.span.start)
