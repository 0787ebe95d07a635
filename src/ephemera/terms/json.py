"""This module turns JSON objects into terms and back.

An object is an unordered term whose children are its keys: a value is a leaf, an object a term, an array as many
children of that label as it has items, so that ``{"a": []}`` has no child a, ``{"a": null}`` one that holds null, and
``{"a": [1]}`` says the same as ``{"a": 1}``. A key that begins with `@` is an attribute and holds one plain value. An
array within an array has no label for its items, and is refused.

A term is an object if its children are elements in no order, and each of them holds one value or is an object again.
Equal terms give equal objects: keys and the items of arrays are sorted, a float that equals an integer is one, and a
time is a text (ISO 8601, UTC).

A list of values, the ordered term `list [ … ]`, is an array, as an element's only child too: ``{"speed": [3, 5]}``. So
lists are only written; what is read has none.

A key that stands twice in one object is refused, since readers of JSON disagree on what it means (RFC 8259, 4);
repeated children are written as an array.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ephemera.terms import errors
from ephemera.terms.errors import DEEPEST_TERM, LARGEST_MESSAGE, BadMessage, excerpt, in_range, too_deep, whole
from ephemera.terms.ordered_aggregates import LIST
from ephemera.terms.text import Scalar, canonical, iso, parse_number
from ephemera.terms.values import Term, Time, Value, is_number, is_valid, key


def decode(
    text: str | bytes, *, fraction: Callable[[str], object] = parse_number, largest: int = LARGEST_MESSAGE
) -> object:
    """What a JSON text says, if it is one by the letter of RFC 8259, in UTF-8, with our numbers and no key twice.

    `fraction` reads the numbers that are no integers; with `Decimal` they stay exact, as times need.

    >>> decode('{"id": 4711, "item": ["a", "b"]}')
    {'id': 4711, 'item': ['a', 'b']}
    """
    document = errors.decode(text, "the JSON", largest)
    try:
        found: object = json.loads(
            document,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=parse_number,
            parse_float=fraction,
        )
        if "\\ud" in document.lower():  # half a character can only be written as an escape
            whole(json.dumps(found, ensure_ascii=False, default=str), "the JSON")
    except json.JSONDecodeError as error:
        lines = f"line {error.lineno}, " if "\n" in document.strip() else ""  # of a line of JSON, the file has others
        where = f"at {lines}column {error.colno}"
        raise BadMessage(f"the JSON cannot be read {where}: {error.msg}") from None
    except RecursionError:
        raise too_deep("the JSON", "somewhere") from None
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise BadMessage(f"the JSON has the key {excerpt(twice)} twice in one object; write its values as an array")
    return found


def _refuse_constant(constant: str) -> NoReturn:
    raise BadMessage(
        f"the JSON has the number `{constant}`, and there are only finite ones; leave it out or write null"
    )


# ---- to terms ----------------------------------------------------------------------------------------------


def from_object(label: str, data: Mapping[str, Any]) -> Term:
    """The term of that label whose children are the keys of an object.

    >>> from_object("order", {"id": 4711, "item": [{"sku": "a"}, {"sku": "b"}]}) == Term(
    ...     "order",
    ...     (Term("id", (4711,)), Term("item", (Term("sku", ("a",)),)), Term("item", (Term("sku", ("b",)),))),
    ...     ordered=False,
    ... )
    True
    """
    if label.startswith("@"):
        raise BadMessage(f"{excerpt(label)} is the name of an attribute and cannot label an event")
    return _term((label,), data)


def _term(path: tuple[str, ...], data: Mapping[str, Any]) -> Term:
    """The term at the end of a path of labels, which is as long as the term is deep."""
    children: list[Term] = []
    attributes: list[tuple[str, Value]] = []
    for name, value in data.items():
        here = (*path, _string(name, path))
        items = value if isinstance(value, list | tuple) else (value,)
        if name.startswith("@"):
            if len(items) > 1:
                raise BadMessage(f"{_place(here)} has {len(items)} values, and an attribute has one")
            attributes += [(name[1:], _scalar(item, here)) for item in items]
            continue
        if len(here) > DEEPEST_TERM:
            raise too_deep("the JSON", f"at {_place(here)}")
        for item in items:
            is_object = isinstance(item, Mapping)
            children.append(_term(here, item) if is_object else Term(name, (_scalar(item, here),), ordered=False))
    return Term(path[-1], tuple(children), ordered=False, attributes=tuple(attributes))


def _scalar(value: object, path: tuple[str, ...]) -> Scalar:
    match value:
        case None | bool() | Time():
            return value
        case int() | float():
            return value if is_valid(value) else in_range(value, _place(path))
        case str():
            return _string(value, path)
        case list() | tuple():
            raise BadMessage(f"{_place(path)} has an array in an array, whose items have no label; name them by a key")
        case _:
            raise BadMessage(f"{_place(path)} has a {type(value).__name__}, where a plain JSON value is needed")


def _string(text: object, path: tuple[str, ...]) -> str:
    if not isinstance(text, str):
        raise BadMessage(f"{_place(path)} has the key {excerpt(repr(text))}, and keys are texts")
    return text if text.isascii() else whole(text, _place(path))


def _place(path: tuple[str, ...]) -> str:
    shown = path if len(path) < 6 else (*path[:2], "…", *path[-2:])
    return excerpt("/".join(shown), 200)


# ---- to objects --------------------------------------------------------------------------------------------


def to_object(term: Term) -> dict[str, Any] | None:
    """The object that a term is, or None if it is none: in order, with text between elements, several texts in one.

    >>> to_object(Term("order", (Term("item", ("b",)), Term("item", ("a",)), Term("id", (4711,))), ordered=False))
    {'id': 4711, 'item': ['a', 'b']}
    >>> to_object(Term("order", ("text",)))
    """
    result: dict[str, Any] = {}
    pending = [(term, result)]
    lists: set[tuple[int, str]] = set()
    """The keys whose array is one list and not several children."""
    while pending:
        current, target = pending.pop()
        if current.is_ordered and len(current.children) > 1:
            return None
        for name, value in sorted(current.attributes, key=lambda attribute: attribute[0]):
            if isinstance(value, Term) or f"@{name}" in target:
                return None
            target[f"@{name}"] = _plain(value)
        for child in sorted(current.children, key=key):
            if not isinstance(child, Term) or child.label.startswith("@"):
                return None
            item: object
            items = _list(child.children[0]) if len(child.children) == 1 and not child.attributes else None
            if child.label in target and (items is not None or (id(target), child.label) in lists):
                return None
            if items is not None:
                if (item := _array(items)) is None:
                    return None
                lists.add((id(target), child.label))
            elif len(child.children) == 1 and not child.attributes and not isinstance(child.children[0], Term):
                item = _plain(child.children[0])
            else:
                item = {}
                pending.append((child, item))
            _put(target, child.label, item)
    return result


def _put(target: dict[str, Any], name: str, item: object) -> None:
    if name not in target:
        target[name] = item
    elif isinstance(target[name], list):
        target[name].append(item)
    else:
        target[name] = [target[name], item]


def list_items(term: Term) -> tuple[Value, ...] | None:
    """What is in a list of values; None if the term is none.

    >>> list_items(Term("list", (3, 5))), list_items(Term("speed", (3, 5)))
    ((3, 5), None)
    """
    return term.children if term.label == LIST and term.is_ordered and not term.attributes else None


def _list(value: Value) -> tuple[Value, ...] | None:
    return list_items(value) if isinstance(value, Term) else None


def _array(items: tuple[Value, ...]) -> list[object] | None:
    """A list as an array, whose terms are objects; None if one of them is none."""
    written: list[object] = []
    for item in items:
        one = to_object(Term("", (item,), ordered=False)) if isinstance(item, Term) else _plain(item)
        if isinstance(item, Term) and one is None:
            return None
        written.append(one)
    return written


def _plain(value: Scalar) -> object:
    if isinstance(value, Time):
        return iso(value)
    return canonical(value) if is_number(value) else value  # type: ignore[arg-type]
