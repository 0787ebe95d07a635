"""This module declares the commands; each loads what it needs when it is called, and nothing before.

Exit codes: 0 done, 1 the program or the input is wrong, 2 the command line is wrong, 3 the command failed.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ephemera import __version__
from ephemera.base.errors import EphemeraError
from ephemera.cli.files import FAILED, no_output, tell
from ephemera.cli.signals import exit_code, heed_no_more, heeded

if TYPE_CHECKING:
    from ephemera.algebra.nodes import Points
    from ephemera.pipeline import Stage


class Commands(click.Group):
    """The commands, and what is said when one cannot go on with its output, or is told to end."""

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        """Reads the command line, and prints what it asks for itself."""
        with _told():
            return super().make_context(*given, **more)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The names of commands in the order in which they are declared below."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command."""
        with _told():
            return super().invoke(ctx)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except EphemeraError as error:
        from ephemera.connect.atomic_files import CannotWrite

        if not isinstance(error, CannotWrite):
            raise
        tell(str(error))
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_OUTPUT:
            raise
        tell(str(no_output(error)))
    except KeyboardInterrupt:
        tell("stopped")
        raise click.exceptions.Exit(exit_code(is_live=False)) from None
    else:
        return
    raise click.exceptions.Exit(FAILED)


_NO_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)
"""What may be wrong with a place that was open for writing."""

_OWN_PROCESS = object()
"""What a command finds in its context if there is nothing else in the process, as there is in tests."""

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _programs(of_what: str) -> Callable[[_Command], _Command]:
    return click.argument(
        "programs", nargs=-1, required=True, metavar="PROGRAM…", type=click.Path(path_type=Path), help=of_what
    )


_allow_unbounded = click.option(
    "--allow-unbounded", is_flag=True, help="Accept programs that must keep some events forever."
)
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text for people, JSON for machines.",
)


def _print_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(f"ephemera {__version__}")
        raise click.exceptions.Exit


@click.group(cls=Commands, context_settings={"max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
)
def app() -> None:
    """Finds complex events: situations that show only in several events over time, and in absences."""


# ---- commands that look at programs ----------------------------------------------------------------------------


@app.command("check", short_help="Check programs; print what is wrong with them, where, and what would help.")
@_programs("Program files (.eq), or - for standard input.")
@_format
@_allow_unbounded
def _check(programs: tuple[Path, ...], form: str, allow_unbounded: bool) -> None:
    """Check programs; print what is wrong with them, where, and what would help."""
    from ephemera.cli.programs import check_programs

    check_programs(programs, machine=form == "json", allow_unbounded=allow_unbounded)


@app.command("fmt", short_help="Write programs in their one layout; comments stay.")
@_programs("Program files (.eq), or - for standard input.")
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit 1 if a file would change.")
def _fmt(programs: tuple[Path, ...], only_check: bool) -> None:
    """Write programs in their one layout; comments stay."""
    from ephemera.cli.fmt import format_programs

    format_programs(programs, only_check=only_check)


@app.command("explain", short_help="Show what a stage of the compiler makes of a program.")
@click.argument(
    "program",
    metavar="PROGRAM",
    type=click.Path(path_type=Path),
    help="A program file (.eq), or - for standard input.",
)
@click.option(
    "--stage",
    type=click.Choice(["syntax", "rules", "plan", "relevance", "bounds", "physical"]),
    default="rules",
    show_default=True,
    help="Which stage of the compiler to show.",
)
@click.option(
    "--points",
    type=click.Choice(["rules", "joins"]),
    help="What is materialized: rules and event queries, or every join too. In a physical plan otherwise the joins "
    "that pay, and on Spark those by which rules of several keys are spread over partitions.",
)
@click.option(
    "--emit",
    multiple=True,
    metavar="NAME",
    help="With --stage physical: how a run goes that is asked for events of this name only; may be given often.",
)
@click.option(
    "--analyze",
    is_flag=True,
    help="Run the program in this process, over --input or what it declares: what was seen beside what was expected.",
)
@click.option("--input", "inputs", multiple=True, metavar="PATH", help="With --analyze: events, as `run` reads them.")
@click.option(
    "--change",
    metavar="OLD",
    type=click.Path(path_type=Path),
    help="What would become of each rule, and what would be lacking, if a program that runs were changed to this one.",
)
@_format
@_allow_unbounded
def _explain(  # noqa: PLR0917 - its options
    program: Path,
    stage: Stage,
    points: Points | None,
    emit: tuple[str, ...],
    analyze: bool,
    inputs: tuple[str, ...],
    change: Path | None,
    form: str,
    allow_unbounded: bool,
) -> None:
    """Show what a stage of the compiler makes of a program; what would be kept forever is told on standard error."""
    from ephemera.cli.programs import explain_program

    machine = form == "json"
    if change is not None:
        from ephemera.cli.change import explain_change

        others = bool(points or analyze or inputs) or stage != "rules"
        explain_change(change, program, emit, with_others=others, machine=machine, allow_unbounded=allow_unbounded)
        return
    if analyze or inputs:
        from ephemera.cli.analyze import analyze_program

        analyze_program(
            program, points, emit, inputs, is_asked=analyze, machine=machine, allow_unbounded=allow_unbounded
        )
        return
    explain_program(program, stage, points, emit, machine=machine, allow_unbounded=allow_unbounded)


# ---- commands that run them ------------------------------------------------------------------------------------


@app.command("run", short_help="Evaluate programs over events; print what they derive.")
@_programs("Program files (.eq).")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="PATH",
    help="Events: a file of JSON lines, Parquet (.parquet), CSV (.csv) or XML messages (.xml), a folder or a glob of "
    "these, an address such as kafka://host:9092/topic, or - for standard input; may be given often. Otherwise what "
    "the programs declare, or that.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="PATH",
    help="Where answers go: a file (.jsonl), sorted by time, or on Spark a folder, of Parquet (.parquet), of CSV "
    "(.csv), or of JSON lines; or with the engine local an address such as kafka://host:9092/topic, and may be given "
    "often. Otherwise where the programs WRITE them, or standard output.",
)
@click.option(
    "--engine",
    type=click.Choice(["spark", "local", "oracle"]),
    help="What evaluates the programs: spark in batch mode unless told otherwise.",
)
@click.option("--emit", multiple=True, metavar="NAME", help="Only events of this name; may be given often.")
@click.option(
    "--points",
    type=click.Choice(["rules", "joins"]),
    help="For experiments: store no joins of events, or all of them; otherwise those that pay, and on Spark those by "
    "which rules of several keys are spread over partitions.",
)
@click.option(
    "--dead-letter",
    metavar="PATH",
    help="Where bad and late events go, with the reason: a file; live on Spark, a folder.",
)
@_allow_unbounded
@click.option("--lenient", is_flag=True, help="Read declared attributes that are no columns of the input as null.")
@click.option(
    "--strict", is_flag=True, help="End with 1, behind the answers, if a key was missing in all events of a type."
)
@click.option(
    "--mode",
    type=click.Choice(["batch", "stream"]),
    default="batch",
    show_default=True,
    help="All events at once, or answers as events come.",
)
@click.option(
    "--until", metavar="TIME", help="In batch mode: the clock runs at least until then, a number or ISO 8601."
)
@click.option("--follow", is_flag=True, help="In stream mode: go on as the last file grows.")
@click.option("--progress", is_flag=True, help="Show progress and a summary even if this is no terminal.")
@click.option(
    "--master",
    metavar="URL",
    help="Spark's master, such as local[4] or spark://host:7077; all local cores otherwise.",
)
@click.option("--debug", is_flag=True, help="Show what Spark logs, and where in its code a failure was.")
@click.option(
    "--then",
    multiple=True,
    metavar="PATH",
    help="What is read live when all of --input has been read as the past: a folder, an address, or -; implies "
    "stream mode.",
)
@click.option("--checkpoint", metavar="FOLDER", help="Live: a folder that keeps the state for another start.")
@click.option(
    "--watch", is_flag=True, help="Live in this process: go on with the programs as their files change, or by SIGHUP."
)
@click.option(
    "--look-back",
    metavar="HOW",
    help="With --watch, what added rules do that lack something of the time before: refuse, from-now, available, or "
    "the archive that has it: files, a folder or an address, as --input names them.",
)
@click.option("--trigger", metavar="PACE", help='Live: how often, such as "1 second"; `once` takes what is there.')
@click.option(
    "--shards",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    help="Live on Spark: into how many parts the state is cut.",
)
@click.option(
    "--metrics",
    metavar="PORT",
    help="Live on Spark and between systems: the port, or host:port, at which Prometheus finds metrics.",
)
@click.option(
    "--deliver/--no-deliver",
    default=None,
    help="Whether messages (RAISE) are sent; live they are, over a history only if that is asked for.",
)
@click.option("--deliver-only", multiple=True, metavar="NAME", help="Send only to this recipient or transport.")
@click.option("--outbox", metavar="FOLDER", help="Where messages wait until they are taken, also for another start.")
@click.option("--allow-command", is_flag=True, help="Let transports run the commands that programs declare.")
def _run(  # noqa: PLR0917 - its options
    programs: tuple[Path, ...],
    inputs: tuple[str, ...],
    engine: str | None,
    mode: str,
    emit: tuple[str, ...],
    outputs: tuple[str, ...],
    **options: Any,
) -> None:
    """Evaluate programs over events; print what they derive, sorted by time, or live as soon as it is certain."""
    from ephemera.cli.run import Mode, run_command
    from ephemera.cli.run_checks import RunsOn

    if click.get_current_context().obj is _OWN_PROCESS:
        from ephemera.base.kept_memory import keep_memory
        from ephemera.base.without_pandas import do_without_pandas

        keep_memory()
        if engine in ("local", "oracle"):
            do_without_pandas()
    if options["then"] and mode == "batch" and _was_said("mode"):
        raise click.UsageError("--then is for live runs, and --mode batch is not one: leave one of them out")
    chosen = None if engine is None else RunsOn(engine)
    given: dict[str, Any] = {"emit": list(emit), "outputs": list(outputs), **options}
    run_command(
        list(programs), list(inputs), engine=chosen, mode=Mode.stream if options["then"] else Mode(mode), **given
    )


def _was_said(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is click.core.ParameterSource.COMMANDLINE


@app.command("change", short_help="Change the programs of a live run that is stopped, by its checkpoint.")
@click.argument("checkpoint", metavar="CHECKPOINT", type=click.Path(), help="The folder that --checkpoint named.")
@_programs("The program files (.eq) that it goes on with, as many as it had.")
@click.option("--dry-run", is_flag=True, help="Say what would become of each rule, and change nothing.")
@click.option(
    "--look-back",
    metavar="HOW",
    default="refuse",
    show_default=True,
    help="What added rules do that lack something of the time before: refuse, from-now, available, or the archive that "
    "has it: files, a folder or an address, as --input names them.",
)
@click.option("--lenient", is_flag=True, help="Read declared columns of tables that these do not have as null.")
@click.option("--debug", is_flag=True, help="Show where in the code a failure was.")
@_allow_unbounded
def _change(  # noqa: PLR0917 - its options
    checkpoint: str,
    programs: tuple[Path, ...],
    dry_run: bool,
    look_back: str,
    lenient: bool,
    debug: bool,
    allow_unbounded: bool,
) -> None:
    """Change the programs of a live run that is stopped, by its checkpoint; say what becomes of each rule.

    The next start goes on with the new programs and this checkpoint: rules that mean the same as if nothing had
    happened, others end, or begin.
    """
    from ephemera.cli.change_checkpoint import change_command

    change_command(
        checkpoint,
        list(programs),
        look_back=look_back,
        dry_run=dry_run,
        lenient=lenient,
        allow_unbounded=allow_unbounded,
        debug=debug,
    )


@app.command("redeliver", short_help="Send the messages again that a run could not deliver.")
@click.argument("outbox", metavar="FOLDER", type=click.Path(), help="The outbox of a run.")
@click.option("--deliver-only", multiple=True, metavar="NAME", help="Send only to this recipient or transport.")
@click.option("--allow-command", is_flag=True, help="Let transports run the commands that programs declare.")
def _redeliver(outbox: str, deliver_only: tuple[str, ...], allow_command: bool) -> None:
    """Send the messages again that a run could not deliver, and those that wait in its outbox."""
    from ephemera.cli.deliver import redeliver_command

    redeliver_command(outbox, deliver_only, allow_command=allow_command)


@app.command("test", short_help="Run stories on every engine; say which do not hold, and how.")
@click.argument(
    "stories", nargs=-1, required=True, metavar="STORY.md…", type=click.Path(path_type=Path), help="Stories to run."
)
@click.option(
    "--engine",
    type=click.Choice(["local", "oracle", "spark", "stream"]),
    help="Only on this engine; otherwise on all but stream, which is live on Spark.",
)
@click.option("--record", is_flag=True, help="Write what is answered into stories that say something else or nothing.")
@click.option("--coverage", is_flag=True, help="Say which rules never matched in any of the stories.")
@click.option(
    "--coverage-at-least",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="The same, and exit 1 if fewer rules have matched.",
)
@_format
def _test(
    stories: tuple[Path, ...],
    *,
    engine: str | None,
    record: bool,
    coverage: bool,
    coverage_at_least: float | None,
    form: str,
) -> None:
    """Run stories on every engine; say which do not hold, and how. Spark runs all of them at once."""
    from ephemera.cli.stories import Options, StoryEngine, stories_command

    options = Options(record, coverage or coverage_at_least is not None, coverage_at_least, form == "json")
    stories_command(list(stories), None if engine is None else StoryEngine(engine), options)


@app.command("demo", short_help="Show what Ephemera does, on Spark; nothing has to be set up.")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Keep the rules, the events and the answers in this folder.",
)
def _demo(keep: Path | None) -> None:
    """Show what Ephemera does: a made-up day of events, some rules, and what Spark finds; nothing has to be set up."""
    from ephemera.cli.demo import demo_command

    demo_command(keep)


# ---- the process -----------------------------------------------------------------------------------------------


def main() -> None:
    """The entry point of the `ephemera` command."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # help and messages hold signs that a terminal may not have
    try:
        with heeded():
            app(obj=_OWN_PROCESS)
    finally:
        heed_no_more()


def _open_standard_streams() -> None:
    """Has the numbers of standard streams that are closed lead nowhere, lest files that are opened get them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which takes the first number that is free
