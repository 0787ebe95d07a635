"""This module shows what a program means that imports others, and what is told of imports that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ephemera
from ephemera.base.diagnostic import as_json, render_text
from ephemera.base.span import Source
from ephemera.cli.main import app
from ephemera.pipeline import Checked, check
from ephemera.syntax.format import format as formatted
from ephemera.syntax.parser import parse

LATE = """\
-- What is late.
TIME UNIT 1 hour;
EVENT order(id: string, qty: int);
EVENT shipped(id: string);
TABLE small(qty: int);
WRITE overdue TO "late.jsonl";
EVENT overdue(id: string) LASTS AT MOST 6 hours;
EVENT twice;
STREAM shop CARRIES order, shipped;
overdue(id) <- o: order(id, qty), w: extend(o, 6), while w: not shipped(id), small(qty);
STRATUM
  DETECT twice { overdue { var I } }
  ON and { event a: overdue(var I), event b: overdue(id: var I) } where { a before b, {a, b} within 24 } END
END
pair(i) <- e: algebra ((overdue(i); twice {{ overdue { var i } }})[48] - shipped);
"""
DESK = """\
TIME UNIT 1 hour;
IMPORT "lib/late.eq" AS late;
EVENT order(id: string, qty: int);
alarm(id) <- _: late:overdue(id), not small(7);
calm(id) <- o: order(id, _), w: extend(o, 24), while w: not _: late:overdue(id);
DETECT call { all var I } ON event t: late:twice {{ overdue { var I } }} END
near(i) <- e: algebra ((late:overdue(i); order(i, _))[5]);
overdue(id) <- o: order(id, q), q > 100;
"""
WRITTEN_OUT = """\
TIME UNIT 1 hour;
EVENT order(id: string, qty: int);
alarm(id) <- _: `late:overdue`(id), not small(7);
calm(id) <- o: order(id, _), w: extend(o, 24), while w: not _: `late:overdue`(id);
DETECT call { all var I } ON event t: `late:twice` {{ overdue { var I } }} END
near(i) <- e: algebra ((`late:overdue`(i); order(i, _))[5]);
overdue(id) <- o: order(id, q), q > 100;
EVENT shipped(id: string);
TABLE small(qty: int);
WRITE `late:overdue` TO "lib/late.jsonl";
EVENT `late:overdue`(id: string) LASTS AT MOST 6 hours;
EVENT `late:twice`;
STREAM shop CARRIES order, shipped;
`late:overdue`(id) <- o: order(id, qty), w: extend(o, 6), while w: not shipped(id), small(qty);
STRATUM
  DETECT `late:twice` { overdue { var I } }
  ON and { event a: `late:overdue`(var I), event b: `late:overdue`(id: var I) } where { a before b, {a, b} within 24 }
  END
END
`late:pair`(i) <- e: algebra ((`late:overdue`(i); `late:twice` {{ overdue { var i } }})[48] - shipped);
"""
EVENTS: list[dict[str, Any]] = [
    {"event": name, "time": time, "data": data}
    for name, time, *data in [
        ("order", 1, "a", 3),
        ("order", 2, "b", 3),
        ("shipped", 8, "b"),
        ("order", 9, "a", 3),
        ("order", 12, "a", 500),
    ]
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "late.eq").write_text(LATE, encoding="utf-8")
    (tmp_path / "desk.eq").write_text(DESK, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(text: str) -> Checked:
    return check(Source("desk.eq", text))


def told(text: str) -> str:
    """The messages and places of all that is wrong."""
    lines = render_text(checked(text).report).splitlines()
    return "\n".join(line.strip() for line in lines if line.startswith("error") or "-->" in line or ":::" in line)


# ---- what it means -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_a_program_means_what_it_means_written_out() -> None:
    found, expected = checked(DESK), checked(WRITTEN_OUT)
    assert found.rules is not None, render_text(found.report)
    assert expected.rules is not None, render_text(expected.report)
    assert found.rules.normal == expected.rules.normal
    assert found.rules.strata == expected.rules.strata
    ours, theirs = found.rules.resolved.catalogue, expected.rules.resolved.catalogue
    assert (ours.events, ours.tables, ours.sources, ours.writes) == (
        theirs.events,
        theirs.tables,
        theirs.sources,
        theirs.writes,
    )


@pytest.mark.parametrize("engine", ["oracle", "local"])
def test_what_is_imported_has_its_prefix_and_what_is_not_has_none(folder: Path, engine: str) -> None:
    program = ephemera.load(folder / "desk.eq")
    tables = {"small": [{"qty": 3}]}
    answers = program.run(EVENTS, tables=tables, engine=engine, allow_unbounded=True)
    # `a` is late at 7 and 15, which is twice within a day; its third order is large, and no small one; `b` was shipped.
    assert [(one["event"], one["time"]) for one in answers] == [
        ("alarm", [1, 7]),
        ("late:overdue", [1, 7]),
        ("overdue", 12),
        ("call", [1, 15]),
        ("late:twice", [1, 15]),
        ("alarm", [9, 15]),
        ("late:overdue", [9, 15]),
        ("calm", [2, 26]),
        ("calm", [12, 36]),
    ]
    assert program.run(EVENTS, tables=tables, engine=engine, emit=["late:twice"]) == [
        {"event": "late:twice", "time": [1, 15], "data": {"overdue": "a"}}
    ]


def test_what_an_import_does_not_derive_may_be_derived_by_who_imports(folder: Path) -> None:
    (folder / "lib" / "late.eq").write_text("seen(x) <- e: raw(x);", encoding="utf-8")
    text = 'IMPORT "lib/late.eq" AS l; raw(x + 1) <- e: a(x); last(x) <- _: l:seen(x);'
    answers = ephemera.compile(text, "desk.eq").run([{"event": "a", "time": 1, "data": [1]}])
    assert [(one["event"], one["data"]) for one in answers] == [("l:seen", [2]), ("last", [2]), ("raw", [2])]


def test_a_file_may_be_imported_by_two_prefixes_and_imports_may_import(folder: Path) -> None:
    (folder / "lib" / "late.eq").write_text('IMPORT "base.eq" AS b; q(x) <- _: b:p(x);', encoding="utf-8")
    (folder / "lib" / "base.eq").write_text("p(x) <- e: a(x);", encoding="utf-8")
    text = (
        'IMPORT "lib/late.eq" AS l; IMPORT "./lib/base.eq" AS k;'
        "one(x) <- _: l:q(x); two(x) <- _: k:p(x); three(x) <- _: l:`b:p`(x);"
    )
    answers = ephemera.compile(text, "desk.eq").run([{"event": "a", "time": 1, "data": [1]}])
    assert {one["event"] for one in answers} == {"one", "two", "three", "l:q", "l:b:p", "k:p"}


def test_places_of_an_import_lie_beside_it(folder: Path) -> None:
    declared = """
    STREAM a FROM "in/*.jsonl" CARRIES p; STREAM b FROM "delta:stock?version=3" CARRIES q;
    TABLE t(x: int) FROM "/t.csv";
    STREAM c FROM "kafka://host/topic" CARRIES r; TABLE u(x: int) FROM "../u.csv"; TABLE v(x: int);
    WRITE s TO "out.jsonl";
    s(x) <- e: p(x);
    """
    (folder / "lib" / "late.eq").write_text(declared, encoding="utf-8")
    found = checked('IMPORT "lib/late.eq" AS l;')
    assert found.rules is not None, render_text(found.report)
    catalogue = found.rules.resolved.catalogue
    assert [one.location for one in catalogue.sources if one.name] == [
        "lib/in/*.jsonl",
        "delta:lib/stock?version=3",
        "kafka://host/topic",
    ]
    assert [place for place, _ in catalogue.table_locations.values()] == ["/t.csv", "lib/../u.csv", None]
    assert catalogue.writes == ((("l:s",), "lib/out.jsonl"),)


def test_an_import_is_written_as_it_is_read() -> None:
    parsed = parse(Source("desk.eq", 'IMPORT   "a \\"b\\".eq"  AS `or-so`;\nIMPORT "x.eq" AS `a b`;'))
    assert not parsed.report.failed
    text = formatted(parsed.program, parsed.comments, parsed.source.text)
    assert text == 'IMPORT "a \\"b\\".eq" AS or-so;\nIMPORT "x.eq" AS `a b`;\n'


def test_import_is_a_word_like_others() -> None:
    assert not check(Source("x.eq", "IMPORT(x) <- AS: IMPORT(x); as(x) <- IMPORT: AS(x);")).report.failed


# ---- places ------------------------------------------------------------------------------------------------


def test_what_is_wrong_in_an_import_is_told_with_its_place_there(folder: Path) -> None:
    wrong = LATE.replace("small(qty);\nSTRATUM", "smal(qty);\nSTRATUM").replace("pair(i) <-", "pair(k) <-")
    (folder / "lib" / "late.eq").write_text(wrong, encoding="utf-8")
    found = checked(DESK)
    places = {(entry["path"], entry["line"], entry["column"], entry["code"]) for entry in as_json(found.report)}
    assert places == {("lib/late.eq", 10, 78, "unknown-event"), ("lib/late.eq", 15, 6, "unbound-variable")}
    line = next(line for line in render_text(found.report).splitlines() if line.startswith("10 |"))
    assert line == f"10 | {wrong.splitlines()[9]}"
    edits = [e for entry in as_json(found.report) for h in entry["help"] for e in h["edits"]]
    assert [wrong[edit["start"] : edit["end"]] for edit in edits if edit["text"] == "small"] == ["smal"]


def test_a_mistake_of_syntax_in_an_import_hides_nothing_else(folder: Path) -> None:
    (folder / "lib" / "late.eq").write_text(LATE.replace("while w: not shipped(id),", "while w not;"), encoding="utf-8")
    places = told(DESK.replace("q > 100", "r > 100"))
    assert "lib/late.eq:10:" in places
    assert "desk.eq:8:33" in places


@pytest.mark.usefixtures("folder")
def test_declarations_that_differ_are_told_with_both_files() -> None:
    rendered = render_text(checked(DESK.replace("qty: int)", "qty: float)", 1)).report)
    assert "--> lib/late.eq:3:7" in rendered
    assert "::: desk.eq:3:7" in rendered
    (entry,) = as_json(checked(DESK.replace("qty: int)", "qty: float)", 1)).report)
    assert (entry["path"], entry["related"][0]["path"]) == ("lib/late.eq", "desk.eq")


def test_rules_are_named_with_their_files(folder: Path) -> None:
    program = ephemera.load("desk.eq")
    assert "at       lib/late.eq:10:1" in program.explain("rules")
    statements = program.explain_json("syntax")["statements"]
    assert [(one.get("path"), one["line"]) for one in statements[6:9]] == [
        (None, 8),
        ("lib/late.eq", 4),
        ("lib/late.eq", 5),
    ]
    notes = program.run_all(EVENTS, tables={"small": []}, allow_unbounded=True).notes
    assert any("rule 6 `late:overdue` (lib/late.eq:10)" in note for note in notes)
    story = '# A claim\n\nProgram: [desk](desk.eq)\n\n| event | time | data |\n|-|-|-|\n| order | 1 | ["a", 3] |\n\n'
    (folder / "story.md").write_text(
        story + 'Answers: no table.\n\n| event | time | data |\n|-|-|-|\n| calm | [1, 25] | ["a"] |\n'
    )
    done = CliRunner().invoke(app, ["test", "--engine", "local", "--coverage", "story.md"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "desk.eq: rule 6 `late:overdue` (lib/late.eq:10) never matched" in done.stdout


# ---- imports that are wrong --------------------------------------------------------------------------------

FIRST = 'IMPORT "lib/late.eq" AS late;'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lib/late.eq", "lib/gone.eq", "cannot read `lib/gone.eq`: No such file or directory"),
        ("lib/late.eq", "lib", "`lib` is no file"),
        ("lib/late.eq", "", "`.` is no file"),
        ("lib/late.eq", "a\\u0000b.eq", "is no file"),
        ("lib/late.eq", "/dev/zero", "`/dev/zero` is no file"),
        ("lib/late.eq", "latin.eq", "`latin.eq` is not UTF-8"),
        ("lib/late.eq", "lib/../desk.eq", "imports itself: `desk.eq`, which imports `desk.eq`"),
        ("lib/late.eq", "round.eq", "imports itself: `desk.eq`, which imports `round.eq`, which imports `desk.eq`"),
        ("TIME UNIT 1 hour;\n", "", "`lib/late.eq` has the TIME UNIT 1h, and this program 1s"),
        ("TIME UNIT", 'TIME ZONE "Europe/Oslo"; TIME UNIT', "has the TIME ZONE `UTC`, and this program `Europe/Oslo`"),
        (FIRST, FIRST * 2, "the prefix `late` is declared twice"),
        (FIRST, FIRST + 'NAMESPACE late = "urn:late";', "the prefix `late` is declared twice"),
        ("AS late", "AS timer", "`timer` has a meaning of its own and cannot be a prefix"),
        ("_: late:overdue", "_: late:overdu", "the import `late` derives no `overdu`"),
        ("_: late:overdue", "_: late:order", "the import `late` derives no `order`"),
        ("_: late:overdue", "late:overdue", "`late` is the prefix of an import, and names an event here"),
        ("overdue(id) <- o: order(id, q)", "late:overdue(id) <- o: order(id, q)", "is derived by an import alone"),
    ],
)
def test_an_import_that_is_wrong_is_told(folder: Path, old: str, new: str, message: str) -> None:
    (folder / "latin.eq").write_bytes(b"-- \xe9\n")
    (folder / "round.eq").write_text('TIME UNIT 1 hour; IMPORT "desk.eq" AS d;', encoding="utf-8")
    assert old in DESK
    text = DESK.replace(old, new, 1)
    (folder / "desk.eq").write_text(text, encoding="utf-8")
    assert message in told(text)


def test_files_that_import_others_twice_come_to_an_end(folder: Path) -> None:
    for k in range(20):
        text = f'IMPORT "l{k + 1}.eq" AS x; IMPORT "l{k + 1}.eq" AS y; p(v) <- e: a(v);'
        (folder / f"l{k}.eq").write_text(text, encoding="utf-8")
    (folder / "l20.eq").write_text("p(v) <- e: a(v);", encoding="utf-8")
    found = check(Source("l0.eq", (folder / "l0.eq").read_text(encoding="utf-8"))).report
    assert {d.message for d in found.diagnostics} == {"more than 100 files would be imported"}


@pytest.mark.usefixtures("folder")
def test_the_help_names_what_was_meant_and_mends_an_identifier() -> None:
    for wrong, right in (("_: late:overdu(id)", "_: late:overdue(id)"), ("late:overdue(id)", "_: late:overdue(id)")):
        text = DESK.replace("_: late:overdue(id)", wrong, 1)
        edits = [e for d in checked(text).report.diagnostics if d.code == "bad-import" for h in d.help for e in h.edits]
        (edit,) = edits
        assert text[: edit.span.start] + edit.text + text[edit.span.end :] == text.replace(wrong, right, 1)


def test_the_command_line_reads_imports_from_where_the_program_stands(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "in.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS), encoding="utf-8")
    monkeypatch.chdir(folder.parent)
    done = CliRunner().invoke(
        app,
        ["run", str(folder / "desk.eq"), "--input", str(folder / "in.jsonl"), "--engine", "local", "--emit", "calm"],
    )
    assert (done.exit_code, [json.loads(line)["time"] for line in done.stdout.splitlines()]) == (
        0,
        [[1, 25], [2, 26], [9, 33], [12, 36]],
    )
