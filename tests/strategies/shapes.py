"""This module writes patterns that match a given fact: atoms by position and by name, and query terms of all kinds."""

from __future__ import annotations

from ephemera.terms.events import Event
from ephemera.terms.values import Term, Value

from .drafts import Body, literal
from .marks import mark
from .streams import VALUES


def atom(body: Body, event: Event, *, identifier: str | None = None) -> str:
    """A positive event query that finds the fact; the identifier is remembered with it."""
    name = identifier if identifier is not None else body.fresh("e")
    body.facts[name] = event
    body.times[name] = body.draft.times(event)
    prefix = "" if body.arrow else "event "
    return f"{prefix}{name}: {pattern(body, event, name)}"


def pattern(body: Body, event: Event, name: str | None = None) -> str:
    """A pattern that matches the fact; `name` is the identifier to whose event near misses are added."""
    return _Pattern(body, event, name).text()


class _Pattern:
    def __init__(self, body: Body, event: Event, name: str | None) -> None:
        self._body = body
        self._dice = body.dice
        self._draft = body.draft
        self._event = event
        self._term = event.term
        self._name = name
        self._outer = frozenset(body.variables)
        self._shows = name is not None and not body.in_branch
        self._fancy = self._shows and body.is_fancy and body.draft.has_room() and not body.conditions

    def text(self) -> str:
        term = self._term
        known = self._draft.shapes.get(term.label)
        scalars = all(not isinstance(c, Term) for c in term.children)
        if known is not None and known.kind == "declared":
            children = {c.label: c.children[0] for c in term.children if isinstance(c, Term)}
            fields = [(n, children.get(n)) for n in ("k", "v")[: known.arity]]
            if self._dice.chance(20):
                return self._named(fields)
            if self._dice.chance(75) or not term.children:
                return f"{term.label}({', '.join(self._argument(v) for _, v in fields)})"
            return self._element(term, root=True)
        if term.is_ordered and scalars and not term.attributes:
            if self._dice.chance(60) or None in term.children or not 0 < len(term.children) < 4:
                return f"{term.label}({', '.join(self._argument(v) for v in term.children)})"
            return self._element(term, root=True)
        simple = [(c.label, c.children[0]) for c in term.children if isinstance(c, Term) and _is_simple(c)]
        distinct = list(dict(simple).items())
        if distinct and self._dice.chance(15):
            return self._named(distinct)
        return self._element(term, root=True)

    def _named(self, fields: list[tuple[str, Value]]) -> str:
        """Some of the attributes by their names; without the feature the names are mixed up."""
        known = self._draft.shapes.get(self._term.label)
        arity = known.arity if known is not None else 2
        chosen = fields if len(fields) == 1 or self._dice.chance(50) else [self._dice.pick(fields)]
        other = {"k": "v", "v": "k"} if arity > 1 else {}
        name = self._draft.name("named atom")
        written = [f"{mark(name, n, other[n]) if n in other else n}: {self._argument(v)}" for n, v in chosen]
        return f"{self._term.label}({', '.join(written)})"

    # ---- values --------------------------------------------------------------------------------------------

    def _argument(self, value: Value, *, in_term: bool = False) -> str:
        """A variable, a constant or a blank for a value."""
        body = self._body
        shared = body.sharing(value)
        outer = [n for n in shared if n in self._outer]
        spell = "var {}".format if in_term else body.var
        blank = f"var {body.fresh('x')}" if in_term else "_"
        constant = self._fancy and self._draft.has_room() and isinstance(value, int | float | str)
        constant = constant and "total" not in body.wishes  # which needs the room
        options = {"fresh": 6, "constant": (4 if in_term and isinstance(value, str) else 2) if constant else 0}
        options["blank"] = 0 if in_term else 1
        if outer and self._draft.has_room():
            options["outer"] = 5
        elif shared and self._fancy:
            options["own"] = 12
        wishes = {"repeated variable": "own", "regex": "constant", "constant": "constant", "shared variable": "outer"}
        for wish in body.wishes:
            if options.get(wishes.get(wish, "")):
                options[wishes[wish]] += 20
        match self._dice.weighed(options):
            case "outer":
                chosen = self._dice.pick(outer)
                self._other_value(value)
                return self._draft.mark("shared variable", spell(chosen), blank)
            case "own":
                self._other_value(value, last=True)
                return self._draft.mark("repeated variable", spell(self._dice.pick(shared)), blank)
            case "constant":
                self._other_value(value)
                if in_term and isinstance(value, str) and self._dice.chance(80):
                    return self._draft.mark("regex", f"/[{value}w]+/", blank)
                return self._draft.mark("constant", literal(value), blank)
            case "blank":
                return "_"
            case _:
                name = body.fresh("x")
                body.variables[name] = value
                return spell(name)

    def _other_value(self, value: Value, *, last: bool = False) -> None:
        """A near miss with another value in this place."""
        if self._name is not None:
            other = self._dice.pick([v for v in VALUES if v != value])
            self._body.miss_value(self._name, value, other, last=last)

    # ---- terms ---------------------------------------------------------------------------------------------

    def _element(self, term: Term, *, root: bool = False) -> str:
        children = list(term.children)
        total = root and self._fancy and "total" in self._body.wishes and len(children) <= 3
        drop = root and not total and len(children) > 1 and self._dice.chance(50)
        if drop:
            children.remove(self._dice.pick(children))
        most = 3 if self._term.label in self._draft.shapes else 2 if len(children) <= 4 else 1
        while root and len(children) > most:  # each child more multiplies the ways to place them
            children.remove(self._dice.pick(children))
            drop = True
        turned = term.is_ordered and len(children) > 1 and self._dice.chance(35)
        optional = self._optional_child(children) if root and not total else None
        parts = [self._child(c) for c in children if c is not optional]
        if optional is not None:
            parts.append(self._optional(optional))
            drop = True
        if root and term.attributes and self._dice.chance(70):
            parts.append(self._attribute(*term.attributes[0]))
        is_partial = self._body.wants("without", 40)
        partial = drop or (root and not total and (not self._fancy or is_partial))
        if partial and root and self._fancy and self._draft.has_room() and self._body.wants("without", 50):
            parts.append(self._without(term))
        opener, closer = self._brackets(term, parts, partial=partial, drop=drop, turned=turned)
        separator = ", " if self._dice.chance(80) else " "
        return f"{term.label} {opener} {separator.join(parts[::-1] if turned else parts)} {closer}"

    def _child(self, child: Value) -> str:
        if not isinstance(child, Term):
            return self._argument(child, in_term=True)
        if len(child.children) != 1:
            return f"{child.label} {{{{ }}}}"
        inner = child.children[0]
        if isinstance(inner, Term):
            if self._dice.chance(75):
                desc = self._draft.mark("desc", "desc")
                return f"{desc} {self._child(inner)}"
            return f"{child.label} {{{{ {self._child(inner)} }}}}"
        if self._shows and self._fancy and self._dice.chance(20) and inner is not None:
            return self._label_variable(child, inner)
        text = f"{child.label} {{ {self._argument(inner, in_term=True)} }}"
        if self._dice.chance(12):
            name = self._body.fresh("x")
            self._body.variables[name] = child
            return f"var {name} -> {text}"
        return text

    def _label_variable(self, child: Term, inner: Value) -> str:
        """Any label for a child; a near miss has the same value under another."""
        body = self._body
        label, name = body.fresh("x"), self._draft.name("label variable")
        other = "v" if child.label == "k" else "k"
        if self._name is not None:
            body.miss_value(self._name, child, Term(other, child.children))
        body.head.append(mark(name, f"var {label}", literal(child.label)))
        value = self._argument(inner, in_term=True)
        return f"{mark(name, f'var {label}', child.label)} {{ {value} }}"

    def _optional_child(self, children: list[Value]) -> Term | None:
        simple = [c for c in children if isinstance(c, Term) and _is_simple(c)]
        if (
            self._body.arrow
            or len(simple) < 2
            or not self._shows
            or not self._draft.has_room()
            or not self._dice.chance(35)
        ):
            return None
        return simple[-1]

    def _optional(self, child: Term) -> str:
        """A part that need not be there; a near miss lacks it."""
        body, name = self._body, self._draft.name("optional")
        variable = body.fresh("x")
        children = tuple(c for c in self._term.children if c is not child)
        lacking = Term(self._term.label, children, self._term.ordered, self._term.attributes)
        body.miss(self._event, lacking)
        default = self._draft.mark("default", " with default w { 0 }")
        body.optional.append(f"optional w {{ var {variable} }}{default}")
        return f"{mark(name, 'optional ')}{child.label} {{ var {variable} }}"

    def _attribute(self, name: str, value: Value) -> str:
        body, feature = self._body, self._draft.name("attribute")
        outer = [n for n in body.sharing(value) if n in self._outer]
        if outer or not self._shows or self._dice.chance(50):
            self._other_value(value)
            wanted = f"var {self._dice.pick(outer)}" if outer else literal(value)
            return mark(feature, f"@{name} {{ {wanted} }}")
        variable = body.fresh("x")
        body.head.append(mark(feature, f"var {variable}", "0"))
        return mark(feature, f"@{name} {{ var {variable} }}")

    def _without(self, term: Term) -> str:
        """A child that must not be there; near misses have it."""
        body = self._body
        there = {c.key for c in term.children if isinstance(c, Term)}
        outer = [n for n in self._outer if not isinstance(body.variables[n], Term) and body.variables[n] is not None]
        bound = [n for n in outer if Term("k", (body.variables[n],)).key not in there]
        flat = all(not isinstance(c, Term) for c in term.children)
        missing: Value
        if bound and not flat and self._dice.chance(90):
            chosen = self._dice.pick(bound)
            missing = Term("k", (body.variables[chosen],))
            text = self._draft.mark("without a variable", f"without k {{ var {chosen} }}")
        else:
            absent = [v for v in VALUES if Term("v", (v,)).key not in there and v not in term.children]
            value = self._dice.pick(absent)
            missing = value if flat else Term("v", (value,))
            inner = literal(value) if flat else f"v {{ {literal(value)} }}"
            text = self._draft.mark("without", f"without {inner}")
        if self._name is not None:
            children = (*term.children, missing)
            if term.ordered and self._dice.chance(40):
                children = (missing, *term.children)
            body.miss(self._event, Term(term.label, children, term.ordered, term.attributes))
        return text

    def _brackets(self, term: Term, parts: list[str], *, partial: bool, drop: bool, turned: bool) -> tuple[str, str]:
        ordered = term.is_ordered and not turned and len(term.children) > 1 and self._dice.chance(70)
        own = _spelled(ordered=ordered, partial=partial)
        misses = self._name is not None and self._draft.has_room()
        if ordered and len(parts) > 1 and misses and self._dice.chance(0 if "total" in self._body.wishes else 80):
            self._body.miss(self._event, Term(term.label, term.children[::-1], True, term.attributes))
            return self._either("ordered", own, _spelled(ordered=False, partial=partial))
        if drop:
            return self._either("partial", own, _spelled(ordered=ordered, partial=False))
        if turned and len(parts) > 1:
            return self._either("unordered", own, _spelled(ordered=True, partial=partial))
        if not partial and misses:
            more = Term(term.label, (*term.children, self._more(term)), term.ordered, term.attributes)
            self._body.miss(self._event, more)
            return self._either("total", own, _spelled(ordered=ordered, partial=True))
        return own

    def _more(self, term: Term) -> Value:
        flat = all(not isinstance(c, Term) for c in term.children) and term.children
        value = self._dice.pick(VALUES)
        return value if flat else Term("w", (value,))

    def _either(self, feature: str, own: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
        name = self._draft.name(feature)
        return mark(name, own[0], other[0]), mark(name, own[1], other[1])


def _is_simple(term: Term) -> bool:
    return len(term.children) == 1 and not isinstance(term.children[0], Term)


def _spelled(*, ordered: bool, partial: bool) -> tuple[str, str]:
    opener, closer = ("[", "]") if ordered else ("{", "}")
    return (opener * 2, closer * 2) if partial else (opener, closer)
