"""What is said of transports is checked as far as anybody knows them, those of other packages, too."""

from __future__ import annotations

import pytest

import ephemera
from ephemera.rules import transports

RULE = "RAISE to(recipient={}, transport={}) {{ m {{ var X }} }} ON event a: a(var X) END"


def found(declared: str, recipient: str = '"desk"', transport: str = '"way"') -> list[tuple[str, str]]:
    text = f"{declared}\n{RULE.format(recipient, transport)}"
    return [(d.severity, str(d.code)) for d in ephemera.check(text).diagnostics]


@pytest.fixture
def pigeons(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed has a transport."""
    monkeypatch.setattr(transports, "plugged_in", lambda: {"pigeon": "pigeons:Pigeon"})


@pytest.mark.usefixtures("pigeons")
@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ('secret="abc"', "plain-secret"),
        ('loft="amqp://desk:abc@localhost/"', "plain-secret"),
        ("retries=2.5", "bad-setting"),
        ("timeout=5", "bad-setting"),
    ],
)
def test_what_all_transports_share_is_checked_for_those_of_other_packages(setting: str, code: str) -> None:
    assert found(f"TRANSPORT way IS pigeon({setting});") == [("error", code)]


@pytest.mark.usefixtures("pigeons")
def test_what_only_another_package_knows_is_left_to_it() -> None:
    settings = 'loft="roof", birds=3, is_fast=true, secret=env("SECRET"), retries=2, timeout=5 sec'
    assert found(f"TRANSPORT way IS pigeon({settings});") == []


@pytest.mark.parametrize(
    "declared",
    [
        'TRANSPORT way IS http(url="https://localhost/desk@north?to=a@b");',
        'TRANSPORT way IS http(url=env("URL"));',
        'TRANSPORT way IS smtp(sender="desk@localhost");',
        'TRANSPORT way IS mqtt(user="desk", secret=env("SECRET"));',
    ],
)
def test_an_at_sign_elsewhere_names_no_user(declared: str) -> None:
    assert found(declared) == []


@pytest.mark.parametrize(
    ("recipient", "transport"),
    [
        ("var X", '"console"'),  # whoever it is, it is shown
        ("var X", '"mqtt"'),  # a topic, which data may name
        ("var X", '"smtp"'),
        ('"https://localhost/desk"', '"http"'),
        ('"desk"', '"http"'),  # a function may take it
        ("var X", "var X"),
    ],
)
def test_messages_that_may_arrive_somewhere_are_told_of_nothing(recipient: str, transport: str) -> None:
    assert found("", recipient, transport) == []


@pytest.mark.parametrize("kind", ["http", "file", "python", "command", "kafka"])
def test_data_that_can_name_nobody_is_warned_of_until_there_is_somebody(kind: str) -> None:
    assert found("", "var X", f'"{kind}"') == [("warning", "unknown-transport")]
    needed = transports.REQUIRED[kind].partition("=")[0]
    value = '["x"]' if needed == "argv" else '"x"'
    declared = f"TRANSPORT desk IS {kind}({needed}={value});"
    assert found(declared, "var X", f'"{kind}"') == []
