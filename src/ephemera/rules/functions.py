"""This module checks calls: functions that there are, with as many arguments as they take, and of the right sort."""

from __future__ import annotations

from collections.abc import Mapping

from ephemera.base.diagnostic import Code, Edit, Help
from ephemera.base.span import Span
from ephemera.base.tree import find
from ephemera.rules.findings import Findings, listed
from ephemera.rules.scope import TIME_FUNCTIONS, bindings, definitions
from ephemera.syntax.nodes import Rule
from ephemera.terms import dates, functions, regex
from ephemera.terms.nodes import Call, Expression, Name, Text, Var
from ephemera.terms.user_functions import UserFunction

FUNCTIONS: dict[str, tuple[int, int | None]] = {
    **{name: (function.fewest, function.most) for name, function in functions.FUNCTIONS.items()},
    "div": (2, 2),
    "mod": (2, 2),
    "subtract": (2, 2),
    "add": (2, None),
    "mult": (2, None),
    "begin": (1, 1),
    "end": (1, 1),
    "duration": (1, 1),
    "datetime": (1, 1),
}
"""The functions of construct terms and expressions, with the fewest and the most arguments."""


def check_functions(rule: Rule, declared: Mapping[str, UserFunction], findings: Findings) -> None:
    """Tells calls of a rule that cannot be."""
    checker = _Functions(rule, declared, findings)
    for call in find(rule, Call):
        checker.call(call)


class _Functions:
    def __init__(self, rule: Rule, declared: Mapping[str, UserFunction], findings: Findings) -> None:
        own = {name: (len(function.takes), len(function.takes)) for name, function in declared.items()}
        self._limits: dict[str, tuple[int, int | None]] = {**FUNCTIONS, **own}
        self._rule = rule
        self._findings = findings
        self._bound = bindings(rule.body).all

    def call(self, call: Call) -> None:
        limits = self._limits.get(call.function)
        name = Span(call.span.start, call.span.start + len(call.function))
        if limits is None:
            otherwise = f"the functions are {listed(sorted(self._limits))}"
            self._findings.add(
                Code.UNKNOWN_FUNCTION,
                f"there is no function `{call.function}`",
                name,
                help=[self._findings.did_you_mean(call.function, self._limits, name, otherwise, what="function")],
            )
            return
        fewest, most = limits
        if len(call.arguments) < fewest or (most is not None and len(call.arguments) > most):
            wanted = str(fewest) if fewest == most else f"at least {fewest}"
            edits: tuple[Edit, ...] = ()
            if most is not None and len(call.arguments) > most:
                edits = (Edit(Span(call.arguments[most - 1].span.end, call.arguments[-1].span.end), ""),)
            self._findings.add(
                Code.ARITY,
                f"`{call.function}` takes {wanted} argument{'' if wanted == '1' else 's'}, not {len(call.arguments)}",
                call.span,
                help=[Help(f"give it {wanted}", edits)],
            )
        elif call.function in TIME_FUNCTIONS:
            self._takes_event(call, call.arguments[0])
        elif call.function == "datetime" and not isinstance(call.arguments[0], Text):
            self._findings.add(
                Code.TYPE_CLASH,
                "`datetime` takes a date and time in quotes, and nothing else",
                call.arguments[0].span,
                help=[Help('write it as in `datetime("2026-09-18T09:00Z")`; a time in a variable needs no `datetime`')],
            )

        elif call.function in ("matches", "format") and isinstance(call.arguments[1], Text):
            self._constant(call, call.arguments[1])

    def _constant(self, call: Call, constant: Text) -> None:
        """An expression or a pattern that can be looked at before anything runs."""
        try:
            if call.function == "matches":
                regex.check(constant.value)
            else:
                dates.check_pattern(constant.value)
        except regex.NoRegex as error:
            self._findings.add(Code.REGEX, str(error), constant.span, help=[Help("it has to match the whole text")])
        except dates.BadPattern as error:
            help = Help('write it as in `format(t, "yyyy-MM-dd HH:mm")`')
            self._findings.add(Code.TYPE_CLASH, str(error), constant.span, help=[help])

    def _takes_event(self, call: Call, argument: Expression) -> None:
        if isinstance(argument, Name):
            return
        if isinstance(argument, Var):
            if argument.name not in self._bound:
                return  # told as a variable without a value
            code, what = Code.UNKNOWN_IDENTIFIER, f"`{argument.name}` is a variable"
        else:
            code, what = Code.TYPE_CLASH, "this is a value"
        events = definitions(self._rule.body).some
        inner = [n.name for n in find(argument, Name) if n.name in events]
        meant = (inner or list(events)) if len(inner or events) == 1 else []
        advice = Help(f"write the identifier that stands before the event, as in `{call.function}(e)`")
        if meant:
            advice = Help(f"write `{call.function}({meant[0]})`", (Edit(argument.span, meant[0]),))
        self._findings.add(code, f"`{call.function}` takes an event, and {what}", argument.span, help=[advice])
