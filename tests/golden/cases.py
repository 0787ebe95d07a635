"""This module reads and writes golden files for diagnostics: a program, the message, and what the help makes of it.

A file is named after the code, `unbound-variable.md` or `unbound-variable.negation.md`. Its blocks are the program
(`eq`), the message (`text`), and the program after the help was applied (`eq` again). Where the help leaves the edit
to the author, the line `By hand:` stands before the last block and the block is written by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ephemera.base.diagnostic import Edit, Report, Severity, apply, render_text
from ephemera.base.span import Source
from ephemera.pipeline import check

FOLDER = Path(__file__).parent / "diagnostics"
BLOCK = re.compile(r"^```(eq|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BY_HAND = "By hand:"


@dataclass(frozen=True, slots=True)
class Case:
    path: Path
    title: str
    program: str
    message: str
    applied: str
    by_hand: bool

    @property
    def code(self) -> str:
        return self.path.name.split(".")[0]

    @property
    def unbounded(self) -> Severity | None:
        """State without a bound is a mistake only where the file is about it."""
        return "error" if self.code == "unbounded-relevance" else None

    def report(self) -> Report:
        return check(Source("program.eq", self.program), unbounded=self.unbounded).report

    def edited(self) -> str:
        """The program after the first help with edits of each diagnostic."""
        edits: list[Edit] = []
        for diagnostic in self.report().diagnostics:
            edits += next((h.edits for h in diagnostic.help if h.edits), ())
        return apply(self.program, edits)


def load(path: Path) -> Case:
    text = path.read_text(encoding="utf-8")
    blocks = [body for _, body in BLOCK.findall(text)]
    program, message, applied = (*blocks, "", "")[:3]
    title = text.split("\n", 1)[0].removeprefix("# ")
    return Case(path, title, program, message, applied, BY_HAND in text)


def save(case: Case) -> None:
    """Writes what is said now; a block by hand stays."""
    message = render_text(case.report()).rstrip("\n") + "\n"
    lead, applied = (BY_HAND, case.applied) if case.by_hand else ("After the help:", case.edited())
    text = f"# {case.title}\n\n```eq\n{case.program}```\n\n```text\n{message}```\n\n{lead}\n\n```eq\n{applied}```\n"
    case.path.write_text(text, encoding="utf-8")


def cases() -> list[Case]:
    return [load(path) for path in sorted(FOLDER.glob("*.md"))]


if __name__ == "__main__":
    for found in cases():
        save(found)
