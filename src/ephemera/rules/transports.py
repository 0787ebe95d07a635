"""This module reads the transports that a program declares, and checks that messages name one that there is.

A message says where it goes by two texts. Its transport is a kind (`http`), a name that is declared
(`TRANSPORT audit IS http(…);`), or a kind of somebody else's package. With a kind, the recipient may be such a name,
too: `to(recipient="audit", transport="http")`. Secrets stand in the environment; here are only the names of variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias, assert_never

from ephemera.base.diagnostic import Code, Edit, Help, Related
from ephemera.base.suggest import suggestion
from ephemera.rules.findings import Findings, listed
from ephemera.rules.nodes import EnvironmentVariable, SettingValue, TransportSettings
from ephemera.syntax.nodes import FromEnvironment, Program, Raise, Rule, Setting, Texts, Transport
from ephemera.terms.nodes import Bool, Duration, Null, Number, Text

Kind: TypeAlias = Literal["text", "number", "duration", "bool", "texts", "secret"]
"""What a setting is; a secret is a variable of the environment, and whatever is a text may be one."""

_COMMON: dict[str, Kind] = {"retries": "number", "timeout": "duration"}
_OF_ANY: dict[str, Kind] = {**_COMMON, "secret": "secret"}
"""What is known of the settings of a kind that is not built in."""
_LOGIN: dict[str, Kind] = {"tls": "bool", "ca": "text", "user": "text", "secret": "secret"}
SETTINGS: dict[str, dict[str, Kind]] = {
    "console": {},
    "file": {"path": "text"},
    "http": {"url": "text", "secret": "secret", "header": "text"},
    "smtp": {
        "host": "text",
        "port": "number",
        "sender": "text",
        "subject": "text",
        **_LOGIN,
    },
    "python": {"function": "text"},
    "command": {"argv": "texts"},
    "kafka": {"servers": "text", "topic": "text", **_LOGIN, "sasl": "text"},
    "mqtt": {"host": "text", "port": "number", "topic": "text", **_LOGIN},
}
"""The transports that are built in, and what can be said of each."""
REQUIRED = {
    "http": 'url="https://…"',
    "file": 'path="…"',
    "python": 'function="module:function"',
    "command": 'argv=["notify", "--urgent"]',
    "kafka": 'servers="host:9092"',
}
"""What a kind cannot do without, as it is written."""
ALIASES = {"mail": "smtp", "http://www.w3.org/2003/05/soap/bindings/HTTP/": "http"}
"""Other names for some of them; the address is the one by which the thesis names HTTP (6.5)."""
GROUP = "ephemera.transports"
"""Where packages say which transports they have."""
_USER_INFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*@")
"""The beginning of a URL in which a user stands, mostly with a password."""


def plugged_in() -> dict[str, str]:
    """The transports of other packages, with the places of their classes."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - only names that are not built in need it

    return {entry.name: entry.value for entry in entry_points(group=GROUP)}


def kind_of(name: str) -> str:
    """The kind of transport that a name stands for."""
    return ALIASES.get(name, name)


# ---- declarations --------------------------------------------------------------------------------------------


def read_transports(
    program: Program, length: Callable[[Duration], int], findings: Findings
) -> dict[str, TransportSettings]:
    """The transports that a program declares; what is wrong with them is told."""
    found: dict[str, Transport] = {}
    for declared in (s for s in program.statements if isinstance(s, Transport)):
        if declared.name in found:
            findings.add(
                Code.DUPLICATE_DECLARATION,
                f"the transport `{declared.name}` is declared twice",
                declared.span,
                related=[Related(found[declared.name].span, "declared here before")],
                help=[Help("remove one of the two", (Edit(declared.span, ""),))],
            )
            continue
        found[declared.name] = declared
    return {name: _read(declared, length, findings) for name, declared in found.items()}


def _read(declared: Transport, length: Callable[[Duration], int], findings: Findings) -> TransportSettings:
    kind = kind_of(declared.kind)
    own = SETTINGS.get(kind)
    if own is None and kind not in plugged_in():
        _tell_unknown(declared.kind, declared, (), findings)
    if declared.name in SETTINGS or declared.name in ALIASES:
        findings.add(
            Code.DUPLICATE_DECLARATION,
            f"`{declared.name}` is a kind of transport already",
            declared.span,
            help=[Help(f"give it another name, such as `my-{declared.name}`")],
        )
    settings: dict[str, SettingValue] = {}
    for setting in declared.settings:
        if setting.name in settings:
            message = f"`{setting.name}` is set twice"
            findings.add(Code.DUPLICATE_DECLARATION, message, setting.span, help=[Help("remove one of the two")])
        settings[setting.name] = _value(setting, length)
        _check(setting, kind, _OF_ANY if own is None else {**own, **_COMMON}, findings, is_open=own is None)
        _check_user_info(setting, kind, findings)
    if own is not None and all(setting.name in own or setting.name in _COMMON for setting in declared.settings):
        _check_required(declared, kind, findings)
    return TransportSettings(declared.name, kind, settings)


def _check_required(declared: Transport, kind: str, findings: Findings) -> None:
    """Tells of what a transport cannot do without."""
    if kind not in REQUIRED:
        return
    needed = REQUIRED[kind].partition("=")[0]
    given = next((setting.value for setting in declared.settings if setting.name == needed), Text(""))
    if isinstance(given, Text) and not given.value.strip():
        findings.add(
            Code.SETTING,
            f"`{kind}` cannot do without `{needed}`",
            declared.span,
            help=[Help(f"write `TRANSPORT {declared.name} IS {kind}({REQUIRED[kind]});`, with what else there is")],
        )


def _check_user_info(setting: Setting, kind: str, findings: Findings) -> None:
    """Tells of URLs with a user or a password, which would be kept with the outbox."""
    match setting.value:
        case Text(value) if _USER_INFO.search(value):
            advice = f'put all of it into a variable of the environment, and write `{setting.name}=env("NAME")`'
            if kind == "http":
                advice = 'leave that out, and write `secret=env("NAME")`, which is sent as `Authorization`'
        case Texts(texts) if any(map(_USER_INFO.search, texts)):
            advice = "leave that out, and let the command find it in its environment"
        case _:
            return
    findings.add(
        Code.PLAIN_SECRET,
        f"the user in the URL of `{setting.name}` stands in the program, where everybody who reads it finds it",
        setting.value.span,
        help=[Help(advice)],
    )


def _value(setting: Setting, length: Callable[[Duration], int]) -> SettingValue:
    match setting.value:
        case FromEnvironment(variable):
            return EnvironmentVariable(variable)
        case Texts(texts):
            return texts
        case Duration():
            return length(setting.value)
        case Text(value) | Number(value) | Bool(value):
            return value
        case Null():
            return ""
        case _:
            assert_never(setting.value)


def _check(setting: Setting, kind: str, known: Mapping[str, Kind], findings: Findings, *, is_open: bool) -> None:
    """Tells of settings that a transport does not have, unless nobody knows which those are, or of another type."""
    if setting.name not in known and is_open:
        return
    if setting.name not in known:
        advice = Help(f"`{kind}` has {listed(sorted(known))}")
        close = suggestion(setting.name, known)
        if close is not None:
            advice = Help(f"did you mean `{close}`?")
        findings.add(Code.SETTING, f"`{kind}` has no setting `{setting.name}`", setting.span, help=[advice])
        return
    wanted = known[setting.name]
    if wanted == "secret" and not isinstance(setting.value, FromEnvironment):
        findings.add(
            Code.PLAIN_SECRET,
            f"`{setting.name}` stands in the program, where everybody who reads it finds it",
            setting.value.span,
            help=[Help(f'put it into a variable of the environment, and write `{setting.name}=env("NAME")`')],
        )
    elif not _is(setting.value, wanted):
        findings.add(
            Code.SETTING,
            f"`{setting.name}` of `{kind}` is {_CALLED[wanted]}",
            setting.value.span,
            help=[Help(f"write {_EXAMPLES[wanted].format(setting.name)}")],
        )


_CALLED: dict[Kind, str] = {
    "text": "a text",
    "number": "a whole number",
    "duration": "a length of time",
    "bool": "`true` or `false`",
    "texts": "a list of texts",
    "secret": "a variable of the environment",
}
_EXAMPLES: dict[Kind, str] = {
    "text": '`{}="…"`',
    "number": "`{}=8`",
    "duration": "`{}=5 sec`",
    "bool": "`{}=true`",
    "texts": '`{}=["notify", "--urgent"]`',
    "secret": '`{}=env("NAME")`',
}


def _is(value: object, wanted: Kind) -> bool:
    match wanted:
        case "text":
            return isinstance(value, Text | FromEnvironment)
        case "number":
            return isinstance(value, Number) and type(value.value) is int and value.value >= 0
        case "duration":
            return isinstance(value, Duration)
        case "bool":
            return isinstance(value, Bool)
        case "texts":
            return isinstance(value, Texts) and bool(value.texts)
        case "secret":
            return isinstance(value, FromEnvironment)
        case _:
            assert_never(wanted)


# ---- messages ------------------------------------------------------------------------------------------------


def check_messages(rules: Iterable[Rule], declared: Mapping[str, TransportSettings], findings: Findings) -> None:
    """Tells of messages whose transport there is not, or none that data could name, and of secrets in recipients.

    A computed transport is looked up when the message is sent.
    """
    for rule in rules:
        if not isinstance(rule.head, Raise):
            continue
        transport, recipient = rule.head.transport, rule.head.recipient
        if isinstance(recipient, str) and _USER_INFO.search(recipient):
            findings.add(
                Code.PLAIN_SECRET,
                "the user in the URL of the recipient stands in the program, where everybody who reads it finds it",
                rule.head.span,
                help=[
                    Help(
                        "leave that out, and name a transport with a secret: "
                        '`TRANSPORT audit IS http(url="https://…", secret=env("NAME"));`'
                    )
                ],
            )
        if not isinstance(transport, str) or transport in declared:
            continue
        if kind_of(transport) not in SETTINGS and transport not in plugged_in():
            _tell_unknown(transport, rule.head, declared, findings)
        else:
            _check_way(rule.head, kind_of(transport), declared, findings)


def _check_way(head: Raise, kind: str, declared: Mapping[str, TransportSettings], findings: Findings) -> None:
    """Tells of messages that data sends by a kind that has to be declared, where there is none that it could name."""
    if isinstance(head.recipient, str) or kind not in REQUIRED or any(one.kind == kind for one in declared.values()):
        return
    findings.add(
        Code.UNKNOWN_TRANSPORT,
        f"data names who gets this by `{kind}`, and none is declared that it could name",
        head.span,
        notes=["as it stands, only a function that is given by `deliver=` gets these messages"],
        help=[Help(f"declare each of them: `TRANSPORT desk IS {kind}({REQUIRED[kind]});`")],
        severity="warning",
    )


def _tell_unknown(name: str, place: Transport | Raise, declared: Iterable[str], findings: Findings) -> None:
    known = [*declared, *SETTINGS, *sorted(plugged_in())]
    close = suggestion(name, known)
    guess = f"did you mean `{close}`?" if close else f'declare it: `TRANSPORT {name} IS http(url="…");`'
    findings.add(
        Code.UNKNOWN_TRANSPORT,
        f"there is no transport `{name}`",
        place.span,
        notes=[f"there are {listed(known)}"],
        help=[Help(guess)],
    )
