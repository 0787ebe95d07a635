"""This module holds the command `demo`: a day of events is made up, and Spark finds in it what some rules describe."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ephemera.base.scratch import scratch
from ephemera.base.span import Source
from ephemera.cli import demo_events
from ephemera.cli.files import WRONG_COMMAND
from ephemera.cli.inputs import Given
from ephemera.cli.spark import Wanted, check_spark, run_on_spark, told
from ephemera.connect.atomic_files import write_file
from ephemera.pipeline import check
from ephemera.program import Program

RULES = Path(__file__).with_name("demo.eq")
_EVENTS, _ANSWERS = "events.jsonl", "answers.jsonl"
_NAMES = {RULES.name, _EVENTS, _ANSWERS}
_EXAMPLES = 3


def demo_command(keep: Path | None) -> None:
    """Show what Ephemera does: a made-up day of events, some rules, and what Spark finds; nothing has to be set up."""
    check_spark(who="the demo")
    if keep is not None:
        _check(keep)
        _show(keep)
        return
    with told(debug=False), scratch("demo") as folder:
        _show(folder)


def _check(folder: Path) -> None:
    """Makes the folder, or ends the command if it holds anything but an earlier demo."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in folder.iterdir()}
        is_earlier = RULES.name in names and (folder / RULES.name).read_bytes() == RULES.read_bytes()
    except OSError as error:
        click.echo(f"cannot write {folder}: {error.strerror}", err=True)
        raise click.exceptions.Exit(WRONG_COMMAND) from None
    others = sorted(names - _NAMES if is_earlier else names)
    if others:
        click.echo(f"`{folder}` holds other things, such as `{others[0]}`; name a new folder", err=True)
        raise click.exceptions.Exit(WRONG_COMMAND)


def _show(folder: Path) -> None:
    rules, events, answers = (folder / name for name in (RULES.name, _EVENTS, _ANSWERS))
    text = RULES.read_text(encoding="utf-8")
    write_file([text.encode()], rules)
    read = _write(demo_events.events(), events)
    console = Console(highlight=False, soft_wrap=True)
    console.print("A day of a shop that sends fresh food, and of its cold rooms:")
    console.print(", ".join(f"{count:,} {label}" for label, count in sorted(read.items())))
    console.print(f"\n$ ephemera run {rules.name} --input {events.name} --output {answers.name}", style="bold")
    began = time.monotonic()
    program = Program(check(Source(str(RULES), text)))
    wanted = Wanted(str(answers), (), None, [{}], None, debug=False, progress=False)
    run_on_spark([program], [{}], [Given((str(events),), "json")], wanted)
    seconds = time.monotonic() - began
    found: dict[str, list[dict[str, Any]]] = {}
    with answers.open(encoding="utf-8") as lines:
        for line in lines:
            answer = json.loads(line)
            found.setdefault(answer["event"], []).append(answer)
    for paragraph in text.split("\n\n"):
        head = re.search(r"^([\w-]+)\(", paragraph, re.MULTILINE)
        if "<-" in paragraph and head is not None:
            _tell(paragraph, found.get(head[1], []), console)
    total = sum(map(len, found.values()))
    console.print(f"\n{total:,} answers in {sum(read.values()):,} events, {seconds:.1f} s with the start of Spark.")
    console.print("Absences are answers, too: they are known when their window ends. README.md goes on from here.")


def _write(events: Iterable[Mapping[str, Any]], path: Path) -> Counter[str]:
    """Writes events as JSON lines; how many of each type there are."""
    count: Counter[str] = Counter()

    def lines() -> Iterator[bytes]:
        for event in events:
            count[event["event"]] += 1
            yield json.dumps(event).encode() + b"\n"

    write_file(lines(), path)
    return count


def _tell(paragraph: str, answers: Sequence[Mapping[str, Any]], console: Console) -> None:
    """A rule, how often it holds, and a few examples from all over the day."""
    console.print()
    for line in paragraph.strip().splitlines():
        console.print(Text(line, style="green" if line.startswith("--") else "cyan"))
    console.print(f"  {len(answers):,} found, such as", style="bold")
    step = max(len(answers) // _EXAMPLES, 1)
    for answer in answers[step // 2 :: step][:_EXAMPLES]:
        values = ", ".join(f"{v:.2f}" if isinstance(v, float) else str(v) for v in answer["data"])
        console.print(Text(f"    {_times(answer['time'])}   {values}"))


def _times(given: str | list[str]) -> str:
    stamps = [datetime.fromisoformat(t).strftime("%H:%M:%S") for t in ([given] if isinstance(given, str) else given)]
    return " - ".join(stamps)
