"""This module reads and writes terms as XML.

An element is an ordered term, its attributes a set apart, its text a child. White space around a text is dropped,
and the text with it if nothing is left; a text or attribute that is exactly a JSON number is one. A label keeps its
prefix as written (``ns:order``); the namespace behind the prefix is dropped, and a default namespace leaves no trace,
so patterns match names as they are seen. Comments and processing instructions are dropped, texts around them join.
Messages are UTF-8, whatever their declaration says.

Messages come from strangers, so none may have a document type: there are no entities to expand or to fetch. Size,
depth and the number of attributes are limited; a refusal is a `BadMessage`.

`from_xml(to_xml(t)) == t` holds for terms that XML can hold. The others are written as near as can be: unordered
children in the order they have; null, bool and time as texts; texts next to each other as one with a space between,
as in XQuery; a text that looks like a number as it is, which reads back as the number (declare it a string), or not
at all if that is out of range; an empty text as nothing. What cannot be written raises `BadMessage`: a label that is
no XML name, a control character, a term in an attribute.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.errors import DEEPEST_TERM, BadMessage, decode, excerpt, too_deep
from ephemera.terms.namespaces import NONE, XML_PREFIX, Namespaces
from ephemera.terms.text import plain, read_number
from ephemera.terms.values import Term, Value

if TYPE_CHECKING:
    from lxml import etree

MOST_ATTRIBUTES = 256
SAFELY: Mapping[str, Any] = MappingProxyType(
    {
        "encoding": "utf-8",
        "resolve_entities": False,
        "load_dtd": False,
        "dtd_validation": False,
        "attribute_defaults": False,
        "no_network": True,
        "huge_tree": False,
        "recover": False,
        "remove_comments": True,
        "remove_pis": True,
    }
)
"""How what strangers send is parsed; a document type has to be refused, too."""
_SPACE = " \t\r\n"

# Texts, which `re` compiles when they are first used and keeps: with that many letters it takes a while.
_PROLOG_WITH_DOCTYPE = r"(?>(?:\s+|<\?(?s:.*?)\?>|<!--(?s:.*?)-->)*+)<!DOCTYPE"
_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = rf"[{_START}][-.0-9\u00b7\u0300-\u036f\u203f\u2040{_START}]*+"
_QUALIFIED_NAME = rf"(?:{_NAME}:)?{_NAME}"
_ILLEGAL = "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"

_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IN_ATTRIBUTE = _IN_TEXT | str.maketrans({'"': "&quot;", "\t": "&#9;", "\n": "&#10;"})


# ---- reading -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """An element whose end tag is still to come."""

    label: str
    attributes: tuple[tuple[str, Value], ...]
    children: list[Value] = field(default_factory=list)


def from_xml(text: str | bytes, *, strings: Collection[str] = (), namespaces: Namespaces = NONE) -> Term:
    """The term that a message is; `strings` are the children of the root that are declared so and stay texts.

    Labels of namespaces that are declared have the prefixes declared for them, others the prefixes of the document.

    >>> from_xml('<order lang="de"><id>4711</id></order>')  # doctest: +ELLIPSIS
    Term(label='order', children=(Term(label='id', children=(4711,), ...),), ordered=True, attributes=(('lang', 'de'),))
    """
    from lxml import etree  # noqa: PLC0415 - only who reads XML needs it

    stack: list[_Open] = []
    for event, element in etree.iterwalk(_parse(text), events=("start", "end")):
        if event == "start":
            if len(stack) == DEEPEST_TERM:
                raise too_deep("the XML", f"in line {element.sourceline}")
            stack.append(_Open(label_of(element, namespaces), tuple(_attributes(element, namespaces))))
            _add_text(stack, element.text, strings)
            continue
        done = stack.pop()
        term = Term(done.label, tuple(done.children), attributes=done.attributes)
        if not stack:
            return term
        stack[-1].children.append(term)
        _add_text(stack, element.tail, strings)
    raise BadMessage("the XML has no element")


def _parse(text: str | bytes) -> etree._Element:
    from lxml import etree  # noqa: PLC0415

    document = decode(text, "the XML")
    if re.match(_PROLOG_WITH_DOCTYPE, document):
        raise BadMessage("the XML has a document type (`<!DOCTYPE`), and none is allowed; remove it")
    parser = etree.XMLParser(**SAFELY)
    try:
        root = etree.fromstring(document.encode(), parser)
    except etree.XMLSyntaxError as error:
        reason = error.msg or "it cannot be read, line 1"
        if reason.startswith("Excessive depth"):  # libxml2's own limit is not far above ours
            raise too_deep("the XML", f"in line {error.lineno}") from None
        told, _, place = reason.rpartition(", line ")  # where lxml says it
        raise BadMessage(f"the XML is not well-formed at line {place}: {excerpt(told, 100)}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise BadMessage("the XML has a document type, and none is allowed; remove it")
    return root


def root_labels(text: str, namespaces: Namespaces) -> tuple[str, str]:
    """The name of the root as it is written, and its label."""
    root = _parse(text)
    return label_of(root), label_of(root, namespaces)


def label_of(element: etree._Element, namespaces: Namespaces = NONE) -> str:
    """The label of an element; without namespaces, its name as it is written, prefix included."""
    if not isinstance(element.tag, str):
        raise BadMessage(f"the XML has an entity or a node that is no element in line {element.sourceline}")
    uri, _, local = element.tag.removeprefix("{").rpartition("}")
    return namespaces.qualified(uri, local, element.prefix)


def _attributes(element: etree._Element, namespaces: Namespaces) -> Iterator[tuple[str, Value]]:
    if len(element.attrib) > MOST_ATTRIBUTES:
        raise BadMessage(f"an element in line {element.sourceline} has more than {MOST_ATTRIBUTES} attributes")
    names = [str(name) for name in element.attrib]
    if any("}" in name for name in names):
        written = str(_names_as_written(len(names))(element)).split()
        names = [_attribute(name, as_written, namespaces) for name, as_written in zip(names, written, strict=True)]
    for name, value in zip(names, element.attrib.values(), strict=True):
        yield name, _value(str(value))


def _attribute(name: str, written: str, namespaces: Namespaces) -> str:
    uri, brace, local = name.removeprefix("{").rpartition("}")
    return namespaces.qualified(uri, local, written.partition(":")[0]) if brace else written


@cache
def _names_as_written(count: int) -> etree.XPath:
    """What tells the names of that many attributes: lxml knows their namespaces, but not which prefix was used."""
    from lxml import etree  # noqa: PLC0415

    names = ", ' ', ".join(f"name(@*[{k + 1}])" for k in range(count))
    return etree.XPath(f"concat({names}, '')")


def _add_text(stack: list[_Open], text: str | None, strings: Collection[str]) -> None:
    trimmed = (text or "").strip(_SPACE)
    if trimmed:
        is_declared = len(stack) == 2 and stack[-1].label in strings
        stack[-1].children.append(trimmed if is_declared else _value(trimmed))


def _value(text: str) -> Value:
    number = read_number(text)
    return text if number is None else number


# ---- writing -----------------------------------------------------------------------------------------------


def to_xml(term: Term, namespaces: Namespaces = NONE) -> str:
    """A term as XML without a declaration; prefixes that are not declared get namespaces of ours, all at the root.

    >>> to_xml(Term("order", (Term("id", (4711,)), "<soon>"), attributes=(("lang", "de"),)))
    '<order lang="de"><id>4711</id>&lt;soon&gt;</order>'
    """
    written: list[str] = []
    prefixes: set[str] = set()
    stack: list[str | Term] = [term]  # a str is finished text
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            written.append(part)
            continue
        tag = _start_tag(part, prefixes)
        written.append(f"<{tag}>" if part.children else f"<{tag}/>")
        if part.children:
            stack += [f"</{part.label}>", *reversed(_content(part))]
    uris = {prefix: uri for uri, prefix in namespaces.prefixes.items()}
    uris = {p: uris.get(p, f"urn:ephemera:{quote(p)}") for p in sorted(prefixes - {XML_PREFIX})}
    declarations = "".join(f' xmlns:{p}="{_legal(uri).translate(_IN_ATTRIBUTE)}"' for p, uri in uris.items())
    written[0] = f"<{term.label}{declarations}{written[0][1 + len(term.label) :]}"
    return "".join(written)


def _start_tag(term: Term, prefixes: set[str]) -> str:
    tag = _name(term.label, prefixes)
    seen: set[str] = set()
    for name, value in term.attributes:
        if isinstance(value, Term) or name in seen:
            reason = "stands twice" if name in seen else "holds a term"
            raise BadMessage(f"XML cannot hold {excerpt(term.label)}: its attribute {excerpt(name)} {reason}")
        seen.add(name)
        tag += f' {_name(name, prefixes)}="{_legal(plain(value)).translate(_IN_ATTRIBUTE)}"'
    return tag


def _content(term: Term) -> list[str | Term]:
    parts: list[str | Term] = []
    for child in term.children:
        if isinstance(child, Term):
            parts.append(child)
        else:
            gap = " " if parts and isinstance(parts[-1], str) else ""
            parts.append(gap + _legal(plain(child)).translate(_IN_TEXT))
    return parts


def _name(name: str, prefixes: set[str]) -> str:
    prefix, colon, _ = name.partition(":")
    if not re.fullmatch(_QUALIFIED_NAME, name) or prefix == "xmlns":
        raise BadMessage(f"XML cannot hold {excerpt(name)}: it is no XML name")
    if colon:
        prefixes.add(prefix)
    return name


def _legal(text: str) -> str:
    if illegal := re.search(_ILLEGAL, text):
        raise BadMessage(f"XML cannot hold the character U+{ord(illegal[0]):04X} in {excerpt(text)}")
    return text
