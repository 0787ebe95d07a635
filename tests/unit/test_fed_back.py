"""A run that would read its own answers is refused before it begins."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import ephemera
from ephemera import sinks, sources
from ephemera.cli.main import app
from ephemera.connect.systems.address import WrongAddress
from ephemera.connect.systems.fed_back import fed_back

SAME = [
    ("kafka://127.0.0.1:9/t", "kafka://127.0.0.1:9/t"),
    ("kafka://127.0.0.1/t?key=id", "kafka://me@localhost:9092,other:9092/t?start=latest"),
    ("postgresql://a/shop?table=o", "postgres://me@A:5432/shop?table=public.o&order=n"),
    ("delta:lake/o", "delta:./lake/../lake/o?version=3"),
    ("delta:s3://bucket/o", "delta:s3://bucket/o"),
    ("mqtt://a/hall/heat", "mqtt://a:1883/+/heat"),
    ("mqtt://a/hall/heat", "mqtt://a/hall/%23"),
]
OTHERS = [
    ("kafka://a/t", "kafka://a/u"),
    ("kafka://a/t", "kafka://a:9093/t"),
    ("kafka://a/t", "kafka://b/t"),
    ("postgresql://a/shop?table=o", "postgresql://a/shop?table=p"),
    ("postgresql://a/shop?table=o", "postgresql://a/bar?table=o"),
    ("postgresql://a/shop", "postgresql://a/shop?table=o"),
    ("delta:lake/o", "delta:lake/p"),
    ("mqtt://a/hall/heat", "mqtt://a/+"),
    ("mqtt://a/hall", "mqtt://a/hall/heat"),
    ("http://a/t", "kafka://a/t"),
    ("out.jsonl", "kafka://a/t"),
]


@pytest.mark.parametrize(("written", "read"), SAME)
def test_answers_that_go_where_events_come_from_are_refused(written: str, read: str) -> None:
    found = fed_back([None, "out.jsonl", written], ["in.jsonl", read])
    assert found is not None
    assert f"`{written}`, which the run reads" in found


@pytest.mark.parametrize(("written", "read"), OTHERS)
def test_answers_that_go_elsewhere_are_not(written: str, read: str) -> None:
    assert fed_back([written], [read]) is None


@pytest.mark.parametrize(
    "given",
    [["--engine", "local"], ["--engine", "spark"], ["--mode", "stream"], ["--mode", "stream", "--engine", "spark"]],
)
@pytest.mark.parametrize("declares", [True, False])
def test_no_run_reads_its_own_answers(tmp_path: Path, given: list[str], declares: bool) -> None:
    program = tmp_path / "p.eq"
    where = "kafka://127.0.0.1:9/t"
    program.write_text(
        "EVENT a(x: int); b(x) <- i: a(x);"
        + (f'STREAM s FROM "{where}" CARRIES a WATERMARK 1 sec; WRITE b TO "{where}?key=x";' if declares else "")
    )
    more = [] if declares else ["--input", where, "--output", where]
    done = CliRunner().invoke(app, ["run", str(program), *given, *more])
    assert (done.exit_code, "name another topic" in done.output) == (2, True), done.output


def test_no_run_in_python_reads_its_own_answers() -> None:
    where = "kafka://127.0.0.1:9/t"
    with pytest.raises(WrongAddress, match="name another topic"):
        ephemera.compile("EVENT a(x: int); b(x) <- i: a(x);").run(sources.at(where), sink=sinks.at(where))
