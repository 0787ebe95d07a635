"""This module shows that runs destroy nothing: where output may go, how it is written, and what is told of the rest."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from click.testing import CliRunner, Result

from ephemera.base.scratch import LOCK, NoScratch, scratch, scratch_of_process
from ephemera.cli.main import app
from ephemera.connect import atomic_files
from ephemera.connect.atomic_files import CannotWrite, GrowingFile, is_open_end, layout, whole_folder, write_file

PROGRAM = """
EVENT order(id: string);
TABLE known(id: string) FROM "known.csv";
seen(id) <- o: order(id), known(id);
"""
EVENTS = "".join(json.dumps({"event": "order", "time": n, "data": [i]}) + "\n" for n, i in enumerate("ab"))
ANSWERS = EVENTS.replace("order", "seen")
PATIENCE = 60


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that a run reads; it is the current one."""
    monkeypatch.chdir(tmp_path)
    Path("p.eq").write_text(PROGRAM, encoding="utf-8")
    Path("known.csv").write_text("id\na\nb\n", encoding="utf-8")
    Path("in").mkdir()
    Path("in", "e.jsonl").write_text(EVENTS, encoding="utf-8")
    Path("link.jsonl").symlink_to("in/e.jsonl")
    Path("hard.jsonl").hardlink_to("in/e.jsonl")
    Path("alias").symlink_to("in")
    Path("pending.jsonl").symlink_to("in/new.jsonl")
    Path("foreign").mkdir()
    Path("foreign", "part-0.parquet").write_text("not ours", encoding="utf-8")
    Path("foreign", "_SUCCESS").touch()
    return tmp_path


def run(*options: str) -> Result:
    return CliRunner().invoke(app, ["run", "p.eq", *options])


def contents(folder: Path) -> dict[str, str]:
    paths = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_text(encoding="utf-8") if p.is_file() else "" for p in paths}


LOCAL = ("--engine", "local")
FILE, FOLDER, GLOB = ("--input", "in/e.jsonl"), ("--input", "in"), ("--input", "in/*.jsonl")
REFUSED: dict[str, tuple[Sequence[str], str]] = {
    "an input": ([*FILE, "--output", "in/e.jsonl"], "is the input in/e.jsonl"),
    "an input by another path": ([*FILE, "--output", "in/../in/e.jsonl"], "is the input"),
    "an input by a link": ([*FILE, "--output", "link.jsonl"], "is the input"),
    "an input by another name": ([*FILE, "--output", "hard.jsonl"], "is the input"),
    "a link that is read": (["--input", "link.jsonl", "--output", "in/e.jsonl"], "is the input"),
    "in an input folder": ([*FOLDER, "--output", "in/answers.jsonl"], "lies in the input in"),
    "in an input folder by a link": ([*FOLDER, "--output", "alias/answers.jsonl"], "lies in the input in"),
    "behind a link into it": ([*FOLDER, "--output", "pending.jsonl"], "lies in the input in"),
    "under a pattern": ([*GLOB, "--output", "in/answers.jsonl"], "lies in the input in/*.jsonl"),
    "under a pattern, by a link": (["--input", "alias/*.jsonl", "--output", "in/answers.jsonl"], "lies in the input"),
    "below a pattern": (["--input", "**/e.jsonl", "--output", "in/e.jsonl"], "lies in the input"),
    "letters over an input": ([*FILE, "--dead-letter", "in/e.jsonl"], "--dead-letter in/e.jsonl is the input"),
    "the program": ([*FILE, "--output", "p.eq"], "is the program p.eq"),
    "a table": ([*FILE, "--dead-letter", "known.csv"], "is a table of the program, known.csv"),
    "both the same": ([*FILE, "--output", "a.jsonl", "--dead-letter", "./a.jsonl"], "is what --output names"),
    "a folder": ([*FILE, "--dead-letter", "foreign"], "`foreign` is a folder, and one file would be written"),
    "a folder by name": ([*FILE, "--dead-letter", "dead/"], "is the name of a folder"),
    "another machine": ([*FILE, "--output", "s3a://shop/a.jsonl"], "is no path of this machine"),
    "no folder above": ([*FILE, "--output", "none/a.jsonl"], "there is no folder"),
    "a file above": ([*FILE, "--output", "hard.jsonl/a.jsonl"], "there is no folder"),
}
ON_SPARK: dict[str, tuple[Sequence[str], str]] = {
    "the folder of the input": ([*FILE, "--output", "in"], "the input in/e.jsonl lies in --output in"),
    "the folder of a pattern": ([*GLOB, "--output", "in/"], "lies in --output in/"),
    "the input folder": ([*FOLDER, "--output", "in"], "is the input in"),
    "the folder of all": ([*FILE, "--output", "../" + "."], "lies in --output"),
    "letters inside": ([*FILE, "--output", "a/", "--dead-letter", "a/dead.jsonl"], "lies in what --output names"),
    "output of others": ([*FILE, "--output", "foreign"], "`foreign` is a folder with other things in it, such as"),
    "a file for a folder": ([*FILE, "--output", "known.csv"], "is a table of the program"),
    "a file of others": ([*FILE, "--output", "other.parquet"], "`other.parquet` is a file, and answers would be"),
}
LIVE: dict[str, tuple[Sequence[str], str]] = {
    "in the input": ([*FOLDER, "--output", "in/answers"], "lies in the input in"),
    "in the input folder as a URI": ([*FOLDER, "--output", "file://{}/in/answers"], "lies in the input in"),
    "a pattern with braces": (["--input", "{{in,on}}/*.jsonl", "--output", "on/a.jsonl/"], "lies in the input"),
    "letters in answers": ([*FOLDER, "--output", "out", "--dead-letter", "out/dead"], "lies in what --output names"),
    "answers in letters": ([*FOLDER, "--output", "out/a", "--dead-letter", "out"], "lies in --dead-letter out"),
    "the checkpoint": ([*FOLDER, "--output", "out", "--checkpoint", "out"], "is what --output names"),
    "in the checkpoint": ([*FOLDER, "--output", "c/out", "--checkpoint", "c"], "lies in --checkpoint c"),
    "the checkpoint in the input": ([*FOLDER, "--checkpoint", "in/c"], "--checkpoint in/c lies in the input in"),
    "a device": ([*FOLDER, "--output", "/dev/null"], "a live run on Spark writes folders, and `/dev/null` is a file"),
}


@pytest.mark.parametrize(("options", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_no_run_writes_over_what_it_reads(shop: Path, options: Sequence[str], told: str) -> None:
    _check(shop, [*options, *LOCAL], told)
    _check(shop, [*options, "--engine", "oracle"], told)
    if Path(options[1]).is_file():
        _check(shop, [*options, "--mode", "stream"], told)
    if options[2] == "--output":
        _check(shop, options, told)


@pytest.mark.parametrize(("options", "told"), ON_SPARK.values(), ids=ON_SPARK.keys())
def test_folders_replace_neither_what_is_read_nor_what_others_wrote(
    shop: Path, options: Sequence[str], told: str
) -> None:
    (shop / "other.parquet").write_text("not ours", encoding="utf-8")
    _check(shop, options, told)


@pytest.mark.parametrize(("options", "told"), LIVE.values(), ids=LIVE.keys())
def test_live_runs_on_spark_keep_their_folders_apart(shop: Path, options: Sequence[str], told: str) -> None:
    _check(shop, [*(option.format(shop) for option in options), "--mode", "stream"], told)


def _check(shop: Path, options: Sequence[str], told: str) -> None:
    before = contents(shop)
    result = run(*options)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    assert told in result.stderr
    assert len(result.stderr.splitlines()) <= 2
    assert contents(shop) == before


def test_what_standard_input_reads_is_not_written_over(shop: Path) -> None:
    with (shop / "in" / "e.jsonl").open("rb") as given:
        done = start("run", "p.eq", *LOCAL, "--output", "in/e.jsonl", stdin=given)
    assert done == (2, "", "--output in/e.jsonl is what standard input reads; name another file\n")
    assert (shop / "in" / "e.jsonl").read_text(encoding="utf-8") == EVENTS


def test_standard_output_does_not_go_into_what_is_read(shop: Path) -> None:
    with (shop / "in" / "e.jsonl").open("ab") as target:
        done = start("run", "p.eq", *LOCAL, *GLOB, stdout=target)
    assert done == (2, "", "standard output goes into the input in/*.jsonl; name another file\n")
    assert (shop / "in" / "e.jsonl").read_text(encoding="utf-8") == EVENTS


# ---- how it is written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_links_are_followed_and_permissions_kept(shop: Path, mode: str) -> None:
    target = shop / "answers.jsonl"
    target.write_text("before" if mode == "batch" else "", encoding="utf-8")  # which live is not written over
    target.chmod(0o640)
    (shop / "to.jsonl").symlink_to("answers.jsonl")
    assert run(*FILE, *LOCAL, "--mode", mode, "--output", "to.jsonl").exit_code == 0
    assert (shop / "to.jsonl").is_symlink()
    assert target.read_text(encoding="utf-8") == ANSWERS
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_what_is_replaced_keeps_its_other_names(shop: Path) -> None:
    (shop / "answers.jsonl").write_text("before", encoding="utf-8")
    (shop / "kept.jsonl").hardlink_to(shop / "answers.jsonl")
    assert run(*FILE, *LOCAL, "--output", "answers.jsonl").exit_code == 0
    assert (shop / "answers.jsonl").read_text(encoding="utf-8") == ANSWERS
    assert (shop / "kept.jsonl").read_text(encoding="utf-8") == "before"


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_new_files_follow_the_mask_of_the_user(shop: Path, mode: str) -> None:
    before = os.umask(0o027)
    try:
        assert run(*FILE, *LOCAL, "--mode", mode, "--output", "answers.jsonl").exit_code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((shop / "answers.jsonl").stat().st_mode) == 0o640


def test_names_that_others_could_guess_are_not_used(shop: Path) -> None:
    for name in ("answers.jsonl.part", "answers.jsonl.tmp", ".answers.jsonl.part"):
        (shop / name).symlink_to("p.eq")
    before = contents(shop)
    assert run(*FILE, *LOCAL, "--output", "answers.jsonl").exit_code == 0
    assert contents(shop) == before | {"answers.jsonl": ANSWERS}


@pytest.mark.parametrize("mode", ["batch", "stream"])
@pytest.mark.usefixtures("shop")
def test_a_pipe_is_written_to_and_stays(mode: str) -> None:
    os.mkfifo("pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_text(encoding="utf-8")))
    reader.start()
    assert run(*FILE, *LOCAL, "--mode", mode, "--output", "pipe").exit_code == 0
    reader.join(PATIENCE)
    assert got == [ANSWERS]
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


def test_devices_and_what_is_open_are_no_files_to_replace(tmp_path: Path) -> None:
    assert is_open_end(Path(os.devnull))
    assert layout(os.devnull) == "file"
    with (tmp_path / "log").open("w+b") as file:
        file.write(b"before\n")
        file.flush()
        write_file([b"answers\n"], Path(f"/dev/fd/{file.fileno()}"))
        file.write(b"after\n")
        file.flush()
        assert (tmp_path / "log").read_bytes() == b"before\nanswers\nafter\n"
    assert not is_open_end(tmp_path / "log")
    write_file([b"x"], Path(os.devnull))
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.mark.usefixtures("shop")
def test_fmt_follows_links_and_keeps_permissions() -> None:
    Path("ugly.eq").write_text("p(x)<-a:e(x);", encoding="utf-8")
    Path("ugly.eq").chmod(0o600)
    Path("to.eq").symlink_to("ugly.eq")
    assert CliRunner().invoke(app, ["fmt", "to.eq"]).exit_code == 0
    assert Path("ugly.eq").read_text(encoding="utf-8") == "p(x) <- a: e(x);\n"
    assert Path("to.eq").is_symlink()
    assert stat.S_IMODE(Path("ugly.eq").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["letter", "demo.eq", "events.jsonl"])
@pytest.mark.usefixtures("shop")
def test_the_demo_keeps_nothing_where_other_things_are(name: str) -> None:
    Path("kept").mkdir()
    Path("kept", name).write_text("not ours", encoding="utf-8")
    result = CliRunner().invoke(app, ["demo", "--keep", "kept"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"`kept` holds other things, such as `{name}`; name a new folder\n"
    assert contents(Path("kept")) == {name: "not ours"}
    assert CliRunner().invoke(app, ["demo", "--keep", "p.eq"]).stderr == "cannot write p.eq: File exists\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user for a while")
def test_what_is_read_only_is_told_before() -> None:
    folder = Path(tempfile.mkdtemp(prefix="ephemera test "))
    try:
        folder.chmod(0o755)
        (folder / "mine.jsonl").touch()
        os.seteuid(65534)
        told = {
            name: atomic_files.refusal(folder / name, layout(name)) for name in ("mine.jsonl", "a.jsonl", "a.parquet")
        }
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)
    why = f"cannot write {folder}"
    assert told == {
        "mine.jsonl": f"{why}/mine.jsonl: {folder}/mine.jsonl is read-only for this user",
        "a.jsonl": f"{why}/a.jsonl: the folder {folder} is read-only for this user",
        "a.parquet": f"{why}/a.parquet: the folder {folder} is read-only for this user",
    }


# ---- disks that are full and pipes that are closed ------------------------------------------------------------


def start(
    *words: str,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    stdout: IO[bytes] | int = subprocess.PIPE,
    shell: str = '"$@"',
    **more: Any,
) -> tuple[int, str, str]:
    """What a command does in a process of its own."""
    command = ["sh", "-c", shell, "sh", sys.executable, "-m", "ephemera", *words]
    done = subprocess.run(
        command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=PATIENCE, check=False, **more
    )
    return done.returncode, (done.stdout or b"").decode(), done.stderr.decode()


FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no device that is full")


@needs_full
@pytest.mark.parametrize("mode", ["batch", "stream"])
@pytest.mark.parametrize("option", ["--output", "--dead-letter"])
def test_a_full_disk_is_told_in_a_line(shop: Path, mode: str, option: str) -> None:
    with (shop / "in" / "e.jsonl").open("a", encoding="utf-8") as file:
        file.write("no json\n")
    result = run(*FILE, *LOCAL, "--mode", mode, option, str(FULL))
    assert (result.exit_code, result.stderr) == (3, "cannot write /dev/full: No space left on device\n")
    assert stat.S_ISCHR(FULL.stat().st_mode)


@needs_full
def test_a_run_whose_dead_letters_cannot_be_written_leaves_no_answers(shop: Path) -> None:
    with (shop / "in" / "e.jsonl").open("a", encoding="utf-8") as file:
        file.write("no json\n")
    result = run(*FILE, *LOCAL, "--output", str(shop / "o.jsonl"), "--dead-letter", str(FULL))
    assert (result.exit_code, (shop / "o.jsonl").exists()) == (3, False)


@needs_full
@pytest.mark.parametrize("words", [("run", "p.eq", *FILE, "--mode", "stream"), ("--version",)])
def test_standard_output_that_is_full_is_told_in_a_line(shop: Path, words: Sequence[str]) -> None:
    assert shop.is_dir()
    with FULL.open("wb") as full:
        assert start(*words, stdout=full) == (3, "", "cannot write standard output: No space left on device\n")


def test_a_pipe_that_nobody_reads_is_told_in_a_line(shop: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = start("run", "p.eq", *FILE, *LOCAL, stdout=writing, cwd=shop)
    finally:
        os.close(writing)
    assert done == (3, "", "cannot write standard output: Broken pipe\n")


def test_a_disk_that_gets_full_leaves_what_was_there_and_whole_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def full(number: int, data: bytes) -> int:
        if len(data) > 5:
            return real(number, data[:5])
        raise OSError(28, "No space left on device")

    target, growing = tmp_path / "answers.jsonl", tmp_path / "growing.jsonl"
    target.write_bytes(b"before")
    file = GrowingFile(growing)
    file.write(b"1\n")
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CannotWrite, match="No space left"):
        write_file([b"123456\n"], target)
    with pytest.raises(CannotWrite, match="No space left"):
        file.write(b"123456\n")
    file.close()
    assert target.read_bytes() == b"before"
    assert growing.read_bytes() == b"1\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["answers.jsonl", "growing.jsonl"]


def test_standard_output_that_is_closed_is_told_before_the_run(shop: Path) -> None:
    told = "standard output is closed, so there is no place for answers; name one with --output\n"
    assert start("run", "p.eq", *FILE, *LOCAL, shell='"$@" >&-', cwd=shop) == (2, "", told)


@needs_full
def test_standard_error_that_takes_nothing_is_no_reason_to_end(shop: Path) -> None:
    Path("p.eq").write_text("seen(i) <- o: order(i); pair(i) <- o: order(i), q: order(i);", encoding="utf-8")
    code, out, _ = start("run", "p.eq", *FILE, *LOCAL, "--emit", "seen", shell='"$@" 2>/dev/full', cwd=shop)
    assert (code, out.count("\n")) == (0, 2)


def test_streams_that_are_closed_do_not_make_files_of_others_their_own(shop: Path) -> None:
    words = ("run", "p.eq", *FILE, *LOCAL, "--output", "answers.jsonl")
    assert start(*words, shell='"$@" <&- >&- 2>&-', cwd=shop) == (0, "", "")
    assert (shop / "answers.jsonl").read_text(encoding="utf-8") == ANSWERS


# ---- signals -----------------------------------------------------------------------------------------------------


@contextmanager
def following(shop: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A live run in a group of its own, which has given its first answers."""
    command = [sys.executable, "-m", "ephemera", "run", "p.eq", *FILE, "--mode", "stream", "--follow", *options]
    with subprocess.Popen(
        command,
        cwd=shop,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - it may come ignored
    ) as process:
        try:
            last = time.monotonic() + PATIENCE
            # What happens at one instant is certain when time has passed it.
            while not (shop / "answers.jsonl").exists() or not (shop / "answers.jsonl").stat().st_size:
                assert process.poll() is None
                assert time.monotonic() < last
                time.sleep(0.02)
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.parametrize(
    ("signals", "code"),
    [([signal.SIGTERM, signal.SIGTERM], 0), ([signal.SIGINT, signal.SIGINT], 130)],
)
def test_signals_end_a_live_run_cleanly(shop: Path, signals: Sequence[int], code: int) -> None:
    with following(shop, "--output", "answers.jsonl") as process:
        for number in signals:
            os.killpg(process.pid, number)
        _, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told.decode()) == (code, "stopped: 2 events, 0 bad, 0 late, 0 without a value\n")
    answers = (shop / "answers.jsonl").read_text(encoding="utf-8")
    assert ANSWERS.startswith(answers)
    assert answers.endswith("\n")


def test_sigterm_ends_a_batch_run_cleanly(shop: Path) -> None:
    os.mkfifo("never")
    before = sorted(p.name for p in shop.iterdir())
    command = [sys.executable, "-m", "ephemera", "run", "p.eq", "--input", "never", *LOCAL, "--output", "a.jsonl"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        writer = os.open("never", os.O_WRONLY)  # which waits until the run reads
        try:
            os.killpg(process.pid, signal.SIGTERM)
            _, told = process.communicate(timeout=PATIENCE)
        finally:
            os.close(writer)
            if process.poll() is None:
                process.kill()
    assert (process.returncode, told) == (143, b"stopped\n")
    assert sorted(p.name for p in shop.iterdir()) == before


# ---- what killed runs leave ------------------------------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from ephemera.base.scratch import scratch
from ephemera.connect.atomic_files import whole_folder

with scratch("spark") as one, whole_folder(Path("answers")) as two:
    (one / "more").mkdir()
    (one / "more" / "file").touch()
    two.mkdir()
    print(one, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_run_left_is_removed_by_the_next_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    for name in ("ephemera-notes", "other", "target"):
        (tmp_path / "tmp" / name).mkdir(parents=True)
        (tmp_path / "tmp" / name / "file").touch()
    (tmp_path / "tmp" / "target" / LOCK).touch()
    (tmp_path / "tmp" / "ephemera-link").symlink_to(tmp_path / "tmp" / "target")
    kept = sorted(p.name for p in (tmp_path / "tmp").iterdir())
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", KILLED], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        with scratch("spark"), whole_folder(tmp_path / "answers") as data:
            assert left.is_dir()
            assert len(list(tmp_path.glob(".answers.*.part"))) == 2
            data.mkdir()
        process.kill()
        process.wait(PATIENCE)
    assert left.is_dir()
    with scratch("input") as folder, whole_folder(tmp_path / "answers") as data:
        assert not left.exists()
        assert len(list(tmp_path.glob(".answers.*.part"))) == 1
        assert sorted(p.name for p in (tmp_path / "tmp").iterdir()) == sorted([*kept, folder.name])
        data.mkdir()
    assert sorted(p.name for p in (tmp_path / "tmp").iterdir()) == kept
    assert sorted(p.name for p in tmp_path.iterdir()) == ["answers", "tmp"]


def test_what_had_to_make_way_comes_back_if_nothing_took_its_place(tmp_path: Path) -> None:
    left = tmp_path / ".answers.0123.part"
    (left / "old").mkdir(parents=True)
    (left / "old" / "part-0").write_text("before", encoding="utf-8")
    (left / "old" / atomic_files.MARK).touch()
    (left / LOCK).touch()
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "answers"):
        raise ZeroDivisionError
    assert contents(tmp_path) == {"answers": "", "answers/part-0": "before", f"answers/{atomic_files.MARK}": ""}


def test_a_folder_of_the_process_goes_with_it(tmp_path: Path) -> None:
    script = "from ephemera.base.scratch import scratch_of_process\nprint(scratch_of_process('x').is_dir())"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, list(tmp_path.iterdir())) == ("True\n", [])
    assert scratch_of_process.__doc__


def test_no_place_for_temporary_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(NoScratch, match=r"^No usable temporary directory .*; set TMPDIR"), scratch("x"):
        pass
