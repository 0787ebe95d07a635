"""This module runs the documentation: its programs are checked, its Python is executed, its sessions are replayed.

Blocks are told apart by the word behind their fence:

- `eq` is a whole program that passes; `eq-error` is one that does not, and in `docs/diagnostics.md` it fails with the
  code of the section it stands in;
- `python` runs in a namespace of its own, or, if it is a file, in a process beside the session; `py` needs a server of
  Spark Connect, and `tests/spark/test_connect.py` runs it; `pycon` is a doctest, and those of a page go on from one
  another;
- `console` is a session: lines that begin with a dollar sign are commands (`ephemera …`, `cat FILE` and `echo $?`),
  the lines after them what they print, where a line `…` stands for any number of others.

A line ``File `shop.eq`:`` before a block writes it to that file, whatever it holds; a story, which has blocks itself,
stands in a fence of four backquotes. A page has one folder, in which `examples/` is there too, and its sessions run in
the order of the page. `python -m tests.unit.test_docs` writes into the sessions what is printed now; those with a line
`…` are left to the author.
"""

from __future__ import annotations

import contextlib
import doctest
import fcntl
import io
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from ephemera.base.diagnostic import Code, render_text
from ephemera.base.span import Source
from ephemera.cli.main import app
from ephemera.pipeline import check

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
DIAGNOSTICS = ROOT / "docs" / "diagnostics.md"

WITHOUT_PROGRAM = {Code.ENCODING, Code.TOO_LARGE, Code.TOO_MANY_PARTS}
"""Told in prose: their programs are not text, or too long for a page."""

_BLOCK = re.compile(r"^(`{3,})([\w-]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^File `([\w.-]+)`:\n\n?$", re.MULTILINE)
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    file: str | None
    section: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def read(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        before = text[: match.start()]
        named = list(_FILE.finditer(before))
        file = named[-1][1] if named and named[-1].end() == len(before) else None
        sections = _SECTION.findall(before)
        line = before.count("\n") + 1
        yield Block(page, line, match[2], match[3], file, sections[-1] if sections else "")


BLOCKS = [block for page in PAGES for block in read(page)]


def blocks(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if any(b.page == page and b.language == language for b in BLOCKS)]


# ---- programs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", blocks("eq"), ids=str)
def test_a_program_of_the_documentation_passes(block: Block) -> None:
    found = check(Source(str(block), block.text)).report
    assert not found.failed, render_text(found)


@pytest.mark.parametrize("block", blocks("eq-error"), ids=str)
def test_a_wrong_program_of_the_documentation_fails_as_it_says(block: Block) -> None:
    about_state = block.section == str(Code.UNBOUNDED_RELEVANCE)
    found = check(Source(str(block), block.text), unbounded="error" if about_state else None).report
    codes = {str(d.code) for d in found.diagnostics}
    if block.page == DIAGNOSTICS:
        assert codes == {block.section}, render_text(found)
    else:
        assert found.failed


def test_every_code_has_its_section_in_the_order_of_the_codes() -> None:
    titles = _SECTION.findall(DIAGNOSTICS.read_text(encoding="utf-8"))
    codes = [str(code) for code in Code]
    assert [title for title in titles if title in codes] == codes


@pytest.mark.parametrize("code", [code for code in Code if code not in WITHOUT_PROGRAM])
def test_every_code_is_shown_by_a_wrong_program_and_a_right_one(code: Code) -> None:
    shown = [b.language for b in BLOCKS if b.page == DIAGNOSTICS and b.section == str(code)]
    assert {"eq-error", "eq"} <= set(shown)


# ---- Python ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [block for block in blocks("python") if block.file is None], ids=str)
def test_python_of_the_documentation_runs(block: Block) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", pages_with("pycon"), ids=lambda page: page.name)
def test_python_sessions_of_the_documentation_are_real(page: Path) -> None:
    told = io.StringIO()
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for block in [b for b in BLOCKS if b.page == page and b.language == "pycon"]:
        session = doctest.DocTestParser().get_doctest(block.text, {}, str(block), str(page), block.line)
        session.globs = names
        runner.run(session, out=told.write, clear_globs=False)
    assert not told.getvalue(), told.getvalue()


# ---- the command line --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages_with("console"), ids=lambda page: page.name)
def test_sessions_of_the_documentation_are_real(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block, command, expected, printed in replay(page):
        assert fits(expected, printed), f"{block}: {command}\n{printed}"


def replay(page: Path) -> Iterator[tuple[Block, str, str, str]]:
    """The commands of a page in the current folder: each with what the page says it prints, and what it does print."""
    shutil.copytree(ROOT / "examples", "examples")
    shell = Shell()
    with contextlib.ExitStack() as beside:
        if page.name == "connectors.md":
            beside.enter_context(servers())
        for block in read(page):
            if block.language == "console":
                for command, expected in commands(block):
                    yield block, command, expected, shell.run(command)
            elif block.file is not None:
                Path(block.file).write_text(block.text, encoding="utf-8")
                if block.language == "python":
                    beside.enter_context(running(block.file))


@contextlib.contextmanager
def servers() -> Iterator[None]:
    """The servers that the page on connectors talks to, without what it left there the last time.

    Nobody restarts them meanwhile, and one run of the page waits for another, since both use the same names.
    """
    import psycopg  # noqa: PLC0415 - only this page needs it

    from tests.services import address_of, used  # noqa: PLC0415 - only this page needs it
    from tests.systems.brokers import remove_topics  # noqa: PLC0415 - only this page needs it

    with used(fcntl.LOCK_EX):
        remove_topics(address_of("kafka"), ["docs-orders", "docs-overdue", "docs-late"])
        address_of("mqtt")
        with psycopg.connect(address_of("postgres")) as connection:
            connection.execute("DROP TABLE IF EXISTS docs_overdue")
        yield


@contextlib.contextmanager
def running(script: str) -> Iterator[None]:
    """A server that a page starts: it answers when this begins, and has ended when this does."""
    with subprocess.Popen([sys.executable, script], stderr=subprocess.DEVNULL) as process:
        try:
            port = int(re.findall(r"\"127\.0\.0\.1\", (\d+)", Path(script).read_text(encoding="utf-8"))[0])
            while process.poll() is None:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                    break
            yield
        finally:
            process.kill()


class Shell:
    """As much of a shell as a page needs; it remembers the last exit code."""

    def __init__(self) -> None:
        self._runner = CliRunner(env={"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"})
        self._status = 0

    def run(self, command: str) -> str:
        match shlex.split(command):
            case ["ephemera", *arguments]:
                result = self._runner.invoke(app, arguments)
                if result.exception is not None and not isinstance(result.exception, SystemExit):
                    raise result.exception
                self._status = result.exit_code
                return result.output
            case ["cat", name]:
                return Path(name).read_text(encoding="utf-8")
            case ["echo", "$?"]:
                return f"{self._status}\n"
            case _:
                pytest.fail(f"the documentation may not say `{command}`: nothing here can run it")


def commands(block: Block) -> Iterable[tuple[str, str]]:
    """Each command with what the page says it prints."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)
    assert not parts[0], f"{block}: a session begins with a command"
    return zip(parts[1::2], parts[2::2], strict=True)


def fits(expected: str, printed: str) -> bool:
    """Whether the two are equal up to empty lines at the end; a line `…` stands for any number of lines."""
    parts = re.split(r"^…\n", expected.rstrip("\n") + "\n", flags=re.MULTILINE)
    return re.fullmatch("(?:.*\n)*".join(map(re.escape, parts)), printed.rstrip("\n") + "\n") is not None


# ---- links -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def refresh(page: Path) -> None:
    """Writes into the sessions of a page what is printed now."""
    sessions: dict[Block, str] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block, command, expected, printed in replay(page):
            shown = printed.rstrip("\n") + "\n" if printed.strip() else ""
            kept = expected if "\n…\n" in f"\n{expected}" else shown
            sessions[block] = sessions.get(block, "") + f"$ {command}\n{kept}"
    every = iter([sessions.get(block, block.text) for block in read(page)])
    text = _BLOCK.sub(lambda match: f"{match[1]}{match[2]}\n{next(every)}{match[1]}", page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for found in PAGES:
        refresh(found)
