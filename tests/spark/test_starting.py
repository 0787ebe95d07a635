"""A live query that dies, fails to start or is stopped leaves nothing behind that is in the way; Spark is not asked."""

from __future__ import annotations

import threading
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import ephemera as eph
from ephemera.connect.systems.address import NoAnswer
from ephemera.connect.systems.stretches import Position, Reached, Stretch
from ephemera.deliver.delivery import Wanted
from ephemera.deliver.message import Outgoing
from ephemera.deliver.outbox import Outbox
from ephemera.engine.state.checkpoint_lock import hold
from ephemera.spark.batch.job import Job
from ephemera.spark.live import query as live_query
from ephemera.spark.live.checkpoint import Checkpoint
from ephemera.spark.live.host import Host, QuerySinks
from ephemera.spark.live.positions import Positions, QueryStopping
from ephemera.spark.live.query import LiveQuery, Streaming
from ephemera.spark.live.report import Totals
from ephemera.spark.live.sources import LiveSource

PROGRAM = eph.compile(
    'EVENT late(id: int); RAISE to(recipient="desk", transport="console") { bell { id { var I } } } '
    "ON event l: late(var I) END"
)
NOBODY = cast(Any, None)


class Fault(Exception):
    """What goes wrong here."""


def streaming(taken: list[dict[str, Any]], checkpoint: Path) -> Streaming:
    job = Job(PROGRAM._compiled, PROGRAM._world())
    return Streaming(NOBODY, [job], (), str(checkpoint), deliver=Wanted.of({"desk": taken.append}))


def found(taken: list[dict[str, Any]], checkpoint: Path, undone: ExitStack) -> Any:
    """What delivers the messages of a start."""
    return streaming(taken, checkpoint)._messages(Checkpoint(str(checkpoint)), {}, undone)


def message(number: int) -> Outgoing:
    return Outgoing(f"key{number}", number, number, "desk", "console", {"event": "bell"})


def put(checkpoint: Path, *numbers: int) -> None:
    for number in numbers:
        Outbox(str(checkpoint / "outbox")).put([message(number)], number)


def begin_first_batch(checkpoint: Path) -> None:
    """As Spark writes it down before the batch is run."""
    (checkpoint / "spark" / "offsets").mkdir(parents=True)
    (checkpoint / "spark" / "offsets" / "0").touch()


# ---- the outbox ------------------------------------------------------------------------------------------------


def test_a_query_that_died_between_the_messages_of_its_first_batch_and_their_commit_starts_again(
    tmp_path: Path,
) -> None:
    begin_first_batch(tmp_path)
    put(tmp_path, 0)
    taken: list[dict[str, Any]] = []
    with ExitStack() as undone:
        delivery = found(taken, tmp_path, undone).delivery
        delivery.start(-1)
        assert delivery.drain()  # nothing of the batch counts yet
        assert taken == []
        delivery.put([message(0)], 0)
        delivery.committed(0)
        assert delivery.drain()
    assert [one["key"] for one in taken] == ["key0"]


@pytest.mark.parametrize(("has_begun", "numbers"), [(False, (0,)), (False, (0, 1)), (True, (0, 1))])
def test_an_outbox_of_another_query_is_refused(tmp_path: Path, has_begun: bool, numbers: tuple[int, ...]) -> None:
    if has_begun:
        begin_first_batch(tmp_path)
    put(tmp_path, *numbers)
    with ExitStack() as undone, pytest.raises(eph.EphemeraError, match="is that of another query"):
        found([], tmp_path, undone)


# ---- a start that fails ----------------------------------------------------------------------------------------


class Stream:
    """A streaming data frame, its writer and its query, of which one fails."""

    def __init__(self, fails_at: str) -> None:
        self._fails_at = fails_at
        self.has_stopped = False

    @property
    def writeStream(self) -> Stream:  # noqa: N802 - it is Spark's name
        return self

    def foreachBatch(self, host: Host) -> Stream:  # noqa: N802 - it is Spark's name
        del host
        return self

    def option(self, name: str, value: str) -> Stream:
        del name, value
        return self

    def start(self) -> Stream:
        if self._fails_at == "start":
            raise Fault
        return self

    @property
    def status(self) -> dict[str, str]:
        raise Fault

    def stop(self) -> None:
        self.has_stopped = True


@pytest.mark.parametrize("fails_at", ["inputs", "start", "opening"])
def test_a_start_that_fails_leaves_neither_a_sender_nor_a_query_at_work_and_gives_the_checkpoint_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    stream = Stream(fails_at)

    def inlets(*_: Any, **__: Any) -> LiveSource:
        if fails_at == "inputs":
            raise Fault
        return LiveSource(cast(Any, stream), (), 0)

    for name, other in {
        "told_of_java": nullcontext,
        "lent": lambda *_: nullcontext(),
        "spread_live": lambda *_: (),
        "forms_of": lambda *_: {},
        "open_inlets": inlets,
    }.items():
        monkeypatch.setattr(live_query, name, other)
    before = set(threading.enumerate())
    with pytest.raises(Fault):
        streaming([], tmp_path).start()
    assert set(threading.enumerate()) <= before
    assert stream.has_stopped == (fails_at == "opening")
    hold(str(tmp_path)).release()


# ---- the end ---------------------------------------------------------------------------------------------------


class Ended:
    """A query of Spark that has ended with an exception."""

    def awaitTermination(self, timeout: float | None = None) -> None:  # noqa: N802 - it is Spark's name
        del timeout
        raise Fault("[STREAM_FAILED]")

    def processAllAvailable(self) -> None:  # noqa: N802 - it is Spark's name
        raise Fault("[STREAM_FAILED]")


def query_of(checkpoint: Path, positions: Any = None) -> LiveQuery:
    sinks = SimpleNamespace(outbox=None, systems=None, open=lambda *_, **__: None)
    host = Host(NOBODY, (), Checkpoint(str(checkpoint)), (), cast(QuerySinks, sinks), positions=positions)
    return LiveQuery(cast(Any, Ended()), host, Totals(), hold(str(checkpoint)))


def test_who_waits_for_a_query_that_is_stopped_while_it_waits_for_systems_is_told_that_it_has_ended(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:

        def cut(_batch: int, _is_stopping: Any) -> dict[int, Any]:
            stack.enter_context(query.host.paused(0.0))  # somebody stops the query now
            return {}

        query = query_of(tmp_path, SimpleNamespace(cut=cut))
        with pytest.raises(QueryStopping):
            query.host(NOBODY, 0)
        assert query.wait()


def test_who_waits_for_a_query_that_is_stopped_between_two_batches_is_told_that_it_has_ended(tmp_path: Path) -> None:
    query = query_of(tmp_path)
    with query.host.paused(0.0), pytest.raises(QueryStopping):
        query.host(NOBODY, 0)
    query.drain()
    assert query.wait(1.0)


def test_who_waits_for_a_query_that_fails_is_told_why(tmp_path: Path) -> None:
    query = query_of(tmp_path)
    query.host.failed = eph.EphemeraError("the disk is full")
    with pytest.raises(eph.EphemeraError, match="the disk is full"):
        query.wait()


class Away:
    """A system that does not answer."""

    name = "away"

    @property
    def source(self) -> Away:
        return self

    def every(self) -> float:
        return 0.0

    def begin(self) -> Position:
        return {"0": 0}

    def reached(self, since: Position, most: int | None = None) -> Reached:
        raise NoAnswer(f"nobody answers behind {since}, {most}")

    def between(self, first: Position, last: Position) -> list[Stretch]:
        raise AssertionError(first, last)

    def history(self) -> list[Stretch]:
        raise AssertionError

    def read(self, stretch: Stretch) -> Any:
        raise AssertionError(stretch)


@pytest.mark.parametrize(("is_stopping", "expected"), [(True, QueryStopping), (False, NoAnswer)])
def test_a_query_that_is_stopped_while_a_system_is_away_has_not_failed_for_that(
    tmp_path: Path, is_stopping: bool, expected: type[Exception]
) -> None:
    ledger = Checkpoint(str(tmp_path))
    with pytest.raises(expected):
        Positions(ledger, {0: Away()}).cut(0, lambda: is_stopping)
    assert ledger.positions_of(0) is None
