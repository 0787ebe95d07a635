"""This module says how labels of XML namespaces are written: a label is a namespace and a local name, not a prefix.

A program declares prefixes for namespaces. Within, a label of such a namespace is a text with the first prefix that was
declared for it, `o:order`, whatever prefix a document uses. What comes in is spelled so at the border, and so are
programs; behind it, labels are compared as texts. Where a document uses a declared prefix for another namespace, the
label has that namespace in braces, `{urn:other}order`, so that the two are not taken for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from ephemera.base.lazy_dataclass import dataclass
from ephemera.terms.values import Term, Value

XML_PREFIX = "xml"
"""It stands for one namespace in every document, and cannot be declared."""


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces that a program declares."""

    prefixes: Mapping[str, str] = field(default_factory=dict)
    """For each namespace the prefix that its labels have."""
    others: Mapping[str, str] = field(default_factory=dict)
    """For each further prefix of a namespace the one that its labels have."""

    def __bool__(self) -> bool:
        return bool(self.prefixes)

    def declares(self, prefix: str) -> bool:
        """Whether a prefix stands for a namespace."""
        return prefix in self.others or prefix in self.prefixes.values()

    def qualified(self, uri: str, local: str, prefix: str | None) -> str:
        """The label of a name in a document, which has a prefix there, or none.

        >>> shop = namespaces({"o": "urn:o", "p": "urn:o"})
        >>> shop.qualified("urn:o", "order", None), shop.qualified("urn:x", "order", "x")
        ('o:order', 'x:order')
        >>> shop.qualified("urn:x", "order", "o"), shop.qualified("", "order", None)
        ('{urn:x}order', 'order')
        """
        own = self.prefixes.get(uri)
        if own is not None:
            return f"{own}:{local}"
        if prefix is None:
            return local
        return f"{{{uri}}}{local}" if self.declares(prefix) else f"{prefix}:{local}"

    def label(self, written: str) -> str:
        """A label, or the name of an attribute, that was written with some prefix.

        >>> namespaces({"o": "urn:o", "p": "urn:o"}).label("p:order")
        'o:order'
        """
        if not self.others:
            return written
        prefix, colon, local = written.removeprefix("@").partition(":")
        if not colon or prefix not in self.others:
            return written
        return f"{'@' if written.startswith('@') else ''}{self.others[prefix]}:{local}"

    def term(self, term: Term) -> Term:
        """A term whose labels were written with some prefixes."""
        return self._term(term) if self.others else term

    def _term(self, term: Term) -> Term:
        children: tuple[Value, ...] = tuple(self._term(c) if isinstance(c, Term) else c for c in term.children)
        attributes = tuple((self.label(name), value) for name, value in term.attributes)
        return replace(term, label=self.label(term.label), children=children, attributes=attributes)

    def keys(self, data: Any) -> Any:
        """Decoded JSON whose keys were written with some prefixes."""
        if not self.others:
            return data
        if isinstance(data, Mapping):
            return {self.label(k) if isinstance(k, str) else k: self.keys(v) for k, v in data.items()}
        return [self.keys(v) for v in data] if isinstance(data, list | tuple) else data


def namespaces(declared: Mapping[str, str]) -> Namespaces:
    """The namespaces of prefixes, in the order in which they are declared."""
    prefixes: dict[str, str] = {}
    others: dict[str, str] = {}
    for prefix, uri in declared.items():
        if uri in prefixes:
            others[prefix] = prefixes[uri]
        else:
            prefixes[uri] = prefix
    return Namespaces(prefixes, others)


NONE = Namespaces()
