"""This module says where programs read what their streams declare, and of which type that is."""

from __future__ import annotations

from pathlib import Path

import ephemera
from ephemera.connect.declared_streams import Place, declared_places, given_places
from ephemera.rules.nodes import Catalogue

EVENTS = "EVENT txn(card: string); EVENT login(user: string); EVENT out(user: string);"


def of(streams: str) -> Catalogue:
    return ephemera.compile(f"{EVENTS} {streams} p(c) <- t: txn(c);").catalogue


CARDS = of('STREAM cards FROM "cards.csv" FORMAT csv CARRIES txn TIME ts; STREAM users FROM "u" CARRIES login, out;')
PLAIN = of("")
BOTH = frozenset({0, 1})


def test_each_stream_reads_its_own_place_relative_to_its_program() -> None:
    assert declared_places([CARDS], [Path("/home/x")]) == [
        Place("/home/x/cards.csv", frozenset({0}), "csv", "txn"),
        Place("/home/x/u", frozenset({0})),
    ]
    there = of('STREAM cards FROM "s3a://bucket/cards" FORMAT parquet CARRIES txn;')
    assert declared_places([there], [Path("/home/x")]) == [
        Place("s3a://bucket/cards", frozenset({0}), "parquet", "txn")
    ]


def test_what_several_streams_read_has_to_name_its_types() -> None:
    shared = of('STREAM cards FROM "all" CARRIES txn; STREAM users FROM "all" FORMAT json CARRIES login;')
    assert declared_places([shared]) == [Place("all", frozenset({0}), "json")]


def test_a_program_reads_what_it_declares_and_one_that_declares_nothing_what_the_others_do() -> None:
    logins = of('STREAM users FROM "logins.csv" CARRIES login;')
    assert declared_places([CARDS, logins]) == [
        Place("cards.csv", frozenset({0}), "csv", "txn"),
        Place("u", frozenset({0})),
        Place("logins.csv", frozenset({1}), None, "login"),
    ]
    assert declared_places([CARDS, PLAIN]) == [Place("cards.csv", BOTH, "csv", "txn"), Place("u", BOTH)]
    assert declared_places([PLAIN]) == []


def test_programs_may_declare_one_place_differently() -> None:
    other = of('STREAM cards FROM "cards.csv" CARRIES txn, login;')
    assert declared_places([CARDS, other])[0] == Place("cards.csv", frozenset({0}), "csv", "txn")
    assert declared_places([CARDS, other])[2] == Place("cards.csv", frozenset({1}))


def test_what_a_run_names_is_what_a_stream_declares_if_it_does() -> None:
    folders = [Path("/home/x"), Path("/home/y")]
    assert given_places(["/home/x/cards.csv", "new.csv"], [CARDS], folders[:1]) == [
        Place("/home/x/cards.csv", frozenset({0}), "csv", "txn"),
        Place("new.csv", frozenset({0})),
    ]
    assert given_places(["/home/x/cards.csv"], [CARDS, CARDS], folders) == [
        Place("/home/x/cards.csv", frozenset({0}), "csv", "txn"),
        Place("/home/x/cards.csv", frozenset({1})),
    ]
