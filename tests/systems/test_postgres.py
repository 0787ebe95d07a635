"""Tables of PostgreSQL are read over history and live, and hold each answer once, in typed columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

import ephemera
from ephemera import sinks, sources
from ephemera.cli.main import app
from ephemera.connect.systems import postgres_source
from ephemera.connect.systems.address import NoAnswer, address
from ephemera.connect.systems.postgres_source import OpenPostgres, PostgresSource
from ephemera.connect.systems.registry import target_at

ORDERS = """
    EVENT order(id: string, qty: int);
    STREAM s CARRIES order WATERMARK 1 sec;
    big(id, qty) <- o: order(id, qty), qty > 2;
"""


@pytest.fixture
def database(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres, autocommit=True) as connection:
        yield connection


def run(*given: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, given)])


def fill(database: psycopg.Connection[Any], table: str, *rows: tuple[int, str, str, int]) -> None:
    database.execute(f"CREATE TABLE IF NOT EXISTS {table} (n bigint, time timestamptz, id text, qty numeric)")
    with database.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", rows)


def test_a_table_is_a_history(postgres: str, database: psycopg.Connection[Any], fresh: str) -> None:
    fill(database, fresh, (1, "2026-03-01T09:00:00Z", "a", 3), (2, "2026-03-01T10:00:00Z", "b", 1))
    assert ephemera.compile(ORDERS).run(sources.at(f"{postgres}?table={fresh}", "order")) == [
        {"event": "big", "time": "2026-03-01T09:00:00Z", "data": ["a", 3]}
    ]


def test_a_declared_table_may_lie_in_the_database(
    postgres: str, database: psycopg.Connection[Any], fresh: str, tmp_path: Path
) -> None:
    fill(database, fresh, (1, "2026-03-01T09:00:00Z", "a", 7))
    program = tmp_path / "p.eq"
    program.write_text(
        f"""EVENT order(id: string);
        TABLE stock(id: string, qty: int) FROM "{postgres}?table={fresh}";
        found(i, q) <- o: order(i), stock(i, q);"""
    )
    events = tmp_path / "events.jsonl"
    events.write_text('{"event": "order", "time": 1, "data": ["a"]}\n')
    done = run(program, "--engine", "local", "--input", events)
    assert json.loads(done.stdout) == {"event": "found", "time": 1, "data": ["a", 7]}


def test_rows_that_are_added_are_read_live_and_answers_are_rows_with_types(
    postgres: str, database: psycopg.Connection[Any], fresh: str, tmp_path: Path
) -> None:
    program = tmp_path / "p.eq"
    program.write_text(ORDERS.replace("STREAM s", f'STREAM s FROM "{postgres}?table={fresh}&order=n"'))
    given: list[object] = ["--mode", "stream", "--trigger", "once", "--checkpoint", tmp_path / "state"]
    given += ["--output", f"{postgres}?table={fresh}_out"]
    for begin in (1, 3):
        rows = ((n, f"2026-03-01T0{n}:00:00Z", f"o{n}", n) for n in (begin, begin + 1))
        fill(database, fresh, *rows)
        done = run(program, *given)
        assert done.exit_code == 0, done.output
    found = database.execute(f'SELECT event, "begin"::text, id, qty FROM {fresh}_out ORDER BY id').fetchall()
    assert found == [("big", "2026-03-01 03:00:00+00", "o3", 3)]  # that of 4 o'clock is not certain yet


def test_a_commit_counts_once_however_often_it_is_put(postgres: str, fresh: str, database: Any) -> None:
    target = target_at(f"{postgres}?table={fresh}")
    load = b'{"event":"big","columns":[["id","string"]],"counts":true,"rows":[{"event":"big","time":1,"data":["a"]}]},'
    other = load.replace(b'"a"', b'"b"')
    for number, what in ((1, load), (1, other), (2, load)):
        opened = target.open_target(fresh)
        opened.put(what, number)
        opened.close()
    assert database.execute(f"SELECT id FROM {fresh}").fetchall() == [("a",)]
    assert database.execute("SELECT number FROM ephemera_commits WHERE run = %s", [fresh]).fetchall() == [(2,)]


def test_a_table_that_is_not_there_is_told(postgres: str, fresh: str) -> None:
    with pytest.raises(NoAnswer, match=f'relation "{fresh}" does not exist'):
        sources.at(f"{postgres}?table={fresh}").open()


# ---- columns and values ------------------------------------------------------------------------------------------


def put(where: str, program: str, *values: object) -> None:
    """What a program derives from events `a` that have one value each, to a table."""
    events = [{"event": "a", "time": k, "data": [value]} for k, value in enumerate(values)]
    ephemera.compile(program).run(events, sink=sinks.at(where))


def of(kind: str) -> str:
    return f"EVENT a(x: {kind}); b(x) <- i: a(x);"


@pytest.mark.parametrize(
    ("first", "second", "value", "told"),
    [
        ("int", "float", 1.5, "a column `x` of type bigint, and the answers need double precision; change the column"),
        ("string", "int", 7, "a column `x` of type text, and the answers need bigint"),
        ("float", "int", 2**53 + 1, "a column `x` of type double precision, and the answers need bigint"),
        ("time", "string", "2026", "a column `x` of type (timestamp with time zone|bigint), and the answers need text"),
    ],
)
def test_a_column_of_another_type_is_refused_and_nothing_is_rounded(  # noqa: PLR0913, PLR0917 - fixtures
    postgres: str, database: psycopg.Connection[Any], fresh: str, first: str, second: str, value: object, told: str
) -> None:
    where = f"{postgres}?table={fresh}"
    put(where, of(first), "c" if first == "string" else 1)
    with pytest.raises(NoAnswer, match=told):
        put(where, of(second), value)
    assert database.execute(f"SELECT count(*) FROM {fresh}").fetchall() == [(1,)]


def test_a_column_that_holds_more_is_filled(postgres: str, database: psycopg.Connection[Any], fresh: str) -> None:
    database.execute(f"CREATE TABLE {fresh} (key text PRIMARY KEY, x numeric)")
    put(f"{postgres}?table={fresh}", of("int"), 2**53 + 1)
    assert database.execute(f"SELECT x::text FROM {fresh}").fetchall() == [(str(2**53 + 1),)]


def test_two_programs_share_a_column_of_doubles(
    postgres: str, database: psycopg.Connection[Any], fresh: str, tmp_path: Path
) -> None:
    paths = [tmp_path / "p.eq", tmp_path / "q.eq"]
    for path, kind, label in zip(paths, ("int", "float"), ("b", "c"), strict=True):
        path.write_text(f"EVENT a(x: {kind}); {label}(x) <- i: a(x);")
    events = tmp_path / "events.jsonl"
    events.write_text('{"event": "a", "time": 1, "data": [3]}\n')
    done = run(*paths, "--engine", "local", "--input", events, "--output", f"{postgres}?table={fresh}")
    assert done.exit_code == 0, done.output
    found = database.execute(f"SELECT event, x, pg_typeof(x)::text FROM {fresh} ORDER BY event").fetchall()
    assert found == [("b", 3.0, "double precision"), ("c", 3.0, "double precision")]


def test_programs_that_mean_different_things_by_a_column_are_told_before_anything_is_put(
    postgres: str, database: psycopg.Connection[Any], fresh: str, tmp_path: Path
) -> None:
    paths = [tmp_path / "p.eq", tmp_path / "q.eq"]
    paths[0].write_text(of("int"))
    paths[1].write_text("EVENT d(x: string); c(x) <- i: d(x);")
    events = tmp_path / "events.jsonl"
    events.write_text('{"event": "a", "time": 1, "data": [3]}\n{"event": "d", "time": 2, "data": ["t"]}\n')
    done = run(*paths, "--engine", "local", "--input", events, "--output", f"{postgres}?table={fresh}")
    assert done.exit_code == 3
    assert f"columns `x` of the types bigint and text for the table `{fresh}`; write them to several" in done.stderr
    assert database.execute("SELECT to_regclass(%s)", [fresh]).fetchall() == [(None,)]


def test_a_character_that_the_database_does_not_have_is_replaced(
    postgres: str, database: psycopg.Connection[Any], fresh: str
) -> None:
    where = f"{postgres}?table={fresh}"
    put(where, of("string"), "a\0b", "a\ufffdb", "\\u0000")
    put(f"{where}_json", of("any"), "a\0b", "\\u0000")
    texts = database.execute(f'SELECT x FROM {fresh} ORDER BY "begin"').fetchall()
    assert texts == [("a\ufffdb",), ("a\ufffdb",), ("\\u0000",)]  # two answers that differ in that are two rows
    assert database.execute(f'SELECT x FROM {fresh}_json ORDER BY "begin"').fetchall() == [("a\ufffdb",), ("\\u0000",)]


def test_a_value_that_is_refused_is_told_at_once(postgres: str, fresh: str, database: Any) -> None:
    database.execute(f"CREATE TABLE {fresh} (key text PRIMARY KEY, x bigint CHECK (x < 5))")
    with pytest.raises(NoAnswer, match="violates check constraint"):
        put(f"{postgres}?table={fresh}", of("int"), 1, 7)


def test_who_may_not_make_tables_is_told_and_can_be_given_them(
    postgres: str, database: psycopg.Connection[Any], fresh: str
) -> None:
    database.execute(f"CREATE SCHEMA {fresh}; CREATE ROLE {fresh} LOGIN")
    try:
        database.execute(f"GRANT USAGE ON SCHEMA {fresh} TO {fresh}; ALTER ROLE {fresh} SET search_path = {fresh}")
        where = f"{postgres.replace('ephemera@', f'{fresh}@')}?table=out"
        with pytest.raises(NoAnswer, match=f"permission denied for schema {fresh}; let the owner grant that"):
            put(where, of("int"), 1)
        database.execute(
            f"""CREATE TABLE {fresh}.ephemera_commits (run text PRIMARY KEY, number bigint NOT NULL);
            CREATE TABLE {fresh}.out (key text PRIMARY KEY, event text,
                "begin" double precision, "end" double precision, x bigint);
            GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {fresh} TO {fresh}"""
        )
        put(where, of("int"), 1)
        assert database.execute(f"SELECT x FROM {fresh}.out").fetchall() == [(1,)]
    finally:
        database.execute(f"DROP SCHEMA {fresh} CASCADE; DROP ROLE {fresh}")


# ---- reading live ------------------------------------------------------------------------------------------------


def read(opened: OpenPostgres) -> list[list[Any]]:
    """What a look at a table finds, portion by portion."""
    found: list[list[Any]] = []
    while opened.behind:
        found += [one.batch.table["id"].to_pylist() for one in opened.poll(0.0)]  # type: ignore[union-attr]
    return found


def test_rows_that_have_nothing_in_the_column_are_not_read_live(
    postgres: str, database: psycopg.Connection[Any], fresh: str
) -> None:
    fill(database, fresh, (1, "2026-03-01T09:00:00Z", "a", 3))
    database.execute(f"INSERT INTO {fresh} VALUES (NULL, '2026-03-01T10:00:00Z', 'b', 3)")
    source = PostgresSource(address(f"{postgres}?table={fresh}&order=n"))
    for position, found in ((None, [["a"]]), ("1", [])):
        opened = source.open_live(position)
        assert read(opened) == found
        assert opened.position == "1"
        opened.close()


def test_a_table_is_read_in_portions_that_cut_no_value_in_two(
    postgres: str, database: psycopg.Connection[Any], fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_source, "ROWS", 2)
    fill(database, fresh, *((n, "2026-03-01T09:00:00Z", f"{n}{k}", 3) for n in range(1, 5) for k in "abc"[: 5 - n]))
    source = PostgresSource(address(f"{postgres}?table={fresh}&order=n"))
    opened = source.open_live(None)
    portions = read(opened)
    opened.close()
    assert [name for portion in portions for name in sorted(portion)] == [
        *("1a", "1b", "1c"),
        *("2a", "2b", "2c"),
        *("3a", "3b"),
        "4a",
    ]
    assert len(portions) > 2
    assert opened.position == "4"
    seen: list[str] = []
    position = None
    for _ in range(len(portions)):  # killed behind each portion, a run goes on from its position
        opened = source.open_live(position)
        came: list[Any] = []
        while opened.behind and not came:
            came = opened.poll(0.0)
        seen += [name for one in came for name in one.batch.table["id"].to_pylist()]
        position = opened.position
        opened.close()
    assert sorted(seen) == sorted(name for portion in portions for name in portion)


def test_columns_that_nobody_asked_for_end_no_run(
    postgres: str, database: psycopg.Connection[Any], fresh: str, tmp_path: Path
) -> None:
    database.execute(
        f"CREATE TABLE {fresh} (n bigint, time timestamptz, id text, qty numeric, "
        "host inet, found jsonb, tags int[], span tstzrange, seen timestamptz, long interval, mood numeric[])"
    )
    database.execute(
        f"INSERT INTO {fresh} VALUES "
        """(1, '2026-03-01T09:00:00Z', 'a', 3, '10.0.0.1', '{"a": [1, "b"]}', '{1,2}', '[2026-01-01,)', 'infinity',
            '178000000 years', '{1.5,2}'),
           (2, '2026-03-01T10:00:00Z', 'b', 100000000000000000000, '10.0.0.0/8', '3', NULL, NULL, '2026-01-01',
            '1 day', NULL),
           (3, '2026-03-01T11:00:00Z', 'c', 4, NULL, '"x"', '{}', 'empty', '-infinity', NULL, '{NaN}')"""
    )
    whole, live = f"{postgres}?table={fresh}", f"{postgres}?table={fresh}&order=n"
    with pytest.warns(ephemera.EphemeraWarning, match="1 of 3 events could not be used"):
        answers = ephemera.compile(ORDERS).run(sources.at(whole, "order"))
    assert [one["data"] for one in answers] == [["a", 3], ["c", 4]]
    program = tmp_path / "p.eq"
    program.write_text(ORDERS.replace("STREAM s", f'STREAM s FROM "{live}"'))
    target, dead = tmp_path / "out.jsonl", tmp_path / "dead.jsonl"
    given = [
        program,
        "--mode",
        "stream",
        "--trigger",
        "once",
        "--checkpoint",
        tmp_path / "state",
        "--dead-letter",
        dead,
    ]
    told = run(*given, "--output", target)
    assert told.exit_code == 0, told.output
    assert [json.loads(line)["data"] for line in target.read_text().splitlines()] == [["a", 3]]
    assert "100000000000000000000" in dead.read_text()


def test_answers_of_any_type_come_back_as_they_were(postgres: str, fresh: str, tmp_path: Path) -> None:
    values = [1, "1", 2.5, True, 10**17, "two"]
    lines = [json.dumps({"event": "given", "time": k, "data": [value]}) for k, value in enumerate(values)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    (tmp_path / "p.eq").write_text("EVENT given(x: any); held(x) <- g: given(x);")
    where = f"{postgres}?table={fresh}"
    told = run(tmp_path / "p.eq", "--engine", "local", "--input", tmp_path / "in.jsonl", "--output", where)
    assert told.exit_code == 0, told.output
    back = ephemera.compile("EVENT held(x: any) LASTS ANY; again(x) <- h: held(x);").run(sources.at(where))
    assert [one["data"][0] for one in back] == values
