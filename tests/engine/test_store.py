"""This module tests the store of segments against a plain model, and crashes it at every file operation."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ephemera.engine.state.durable_files import ArrowFiles, Files, Posix, files_of
from ephemera.engine.state.segment_store import FACTOR, NoState, State, Store, to_merge
from ephemera.engine.state.segments import BrokenSegment, Piece
from tests.engine.failing_files import OUTCOMES, Crash, FailingFiles, Outcome

FOLDER = "/state/0"
TIERS = (4_000, 16_000)
"""Small, so that a few rows reach every tier."""

Rows = Counter[tuple[str, int, int | None]]


@dataclass
class Batch:
    """What a batch adds: for each table some rows, as their ends; and how far the bounds are then."""

    tables: dict[str, list[int | None]]
    bound: int
    filling: int = 0
    """Bytes in each row, to make segments large."""


@dataclass
class Owner:
    """Knows which rows are dead: those that end at the bound or before."""

    now: int = -1

    def bound(self, name: str) -> int:
        return self.now - (name == "b")

    def merged(self, name: str, tables: Sequence[pa.Table]) -> Piece | None:
        bound = self.bound(name)
        table = pa.concat_tables(tables)
        ends = table["end"].to_pylist()
        found = table.filter(pa.array([e is None or e > bound for e in ends], pa.bool_())).combine_chunks()
        return Piece(name, found, None if None in ends else max(ends))


@dataclass
class Host:
    """Commits batches, one after the other, and has a plain model of what must be there."""

    batches: list[Batch]
    owner: Owner = field(default_factory=Owner)

    def pieces(self, number: int) -> list[Piece]:
        batch = self.batches[number]
        found = []
        for name, ends in batch.tables.items():
            keys = [1000 * number + k for k in range(len(ends))]
            filling = [bytes(batch.filling)] * len(ends)
            table = pa.table({"key": keys, "end": pa.array(ends, pa.int64()), "filling": filling})
            until = None if None in ends else max((e for e in ends if e is not None), default=0)
            found.append(Piece(name, table, until))
        return found

    def commit(self, store: Store, number: int) -> Any:
        self.owner.now = self.batches[number].bound
        return store.commit(number, {"batch": number, "bound": self.owner.now}, self.pieces(number), self.owner)

    def added(self, number: int) -> Rows:
        return rows_of(self.pieces(number))

    def model(self, number: int) -> tuple[Rows, Rows]:
        """The rows that must be there after a batch, and all that ever were."""
        ever: Rows = Counter()
        for k in range(number + 1):
            ever += self.added(k)
        self.owner.now = self.batches[number].bound
        alive = Counter({row: 1 for row in ever if row[2] is None or row[2] > self.owner.bound(row[0])})
        return alive, ever


def rows_of(pieces: list[Piece]) -> Rows:
    found: Rows = Counter()
    for piece in pieces:
        keys, ends = piece.table["key"].to_pylist(), piece.table["end"].to_pylist()
        found.update((piece.name, key, end) for key, end in zip(keys, ends, strict=True))
    return found


def opened(files: Files, **more: Any) -> Store:
    return Store(files, FOLDER, **{"tiers": TIERS, "kept": 3, **more})


def regular(count: int, filling: int = 0) -> Host:
    """Batches alike: some rows die after five batches, some never."""
    return Host([Batch({"a": [n + 5, n + 6], "b": [n + 1], "c": [None] * (n % 2)}, n, filling) for n in range(count)])


# ---- a model -----------------------------------------------------------------------------------------------

ends = st.one_of(st.none(), st.integers(0, 12))
tables = st.dictionaries(st.sampled_from("abc"), st.lists(ends, max_size=3), max_size=3)


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    step = st.tuples(tables, st.integers(0, 2), st.sampled_from([0, 0, 0, 1500, 9000]))
    steps = draw(st.lists(step, max_size=40))
    now = 0
    batches = []
    for added, progress, filling in steps:
        now += progress
        later = {name: [None if e is None else now + e for e in some] for name, some in added.items()}
        batches.append(Batch(later, now, filling))
    return Host(batches)


@settings(max_examples=30)
@given(hosts(), st.integers(0, 99))
def test_what_is_loaded_is_what_was_committed_and_not_dead(host: Host, seed: int) -> None:
    _check(host, Random(seed))


@pytest.mark.parametrize("seed", range(8))
def test_so_it_is_over_many_batches(seed: int) -> None:
    random = Random(seed)
    batches = []
    for n in range(120):
        lasting = [random.choice([None, 3, 10, 60]) for _ in range(random.randint(0, 3))]
        rows: list[int | None] = [None if e is None else n + e for e in lasting]
        batches.append(Batch({random.choice("ab"): rows}, n, random.choice([0, 0, 0, 3000, 9000])))
    _check(Host(batches), random)


def _check(host: Host, random: Random) -> None:
    files = FailingFiles()
    store = opened(files)
    for n in range(len(host.batches)):
        if random.random() < 0.2 and n:
            store = opened(files)
            store.load(n - 1)
        host.commit(store, n)
        state = opened(files).load(n)
        alive, ever = host.model(n)
        found = rows_of(state.pieces)
        assert alive <= found <= ever
        assert state.words == {"batch": n, "bound": host.batches[n].bound}
        _check_since(host, files, random.randint(max(0, n - 6), n), n)


def _check_since(host: Host, files: FailingFiles, known: int, n: int) -> None:
    """Whoever knows an earlier state and adds what came since has all that is alive."""
    later = opened(files).since(known, n)
    if later is None:
        assert known < n - 3
        return
    assert [state.batch for state in later] == list(range(known + 1, n + 1))
    for state in later:
        host.owner.now = host.batches[state.batch].bound
        added = {r: c for r, c in host.added(state.batch).items() if r[2] is None or r[2] > host.owner.bound(r[0])}
        assert Counter(added) <= rows_of(state.pieces) <= host.added(state.batch)


@pytest.mark.parametrize("lasting", [20, 150])
def test_files_stay_few_and_the_dead_do_not_stay(lasting: int) -> None:
    files = FailingFiles()
    store = opened(files)
    host = Host([Batch({"a": [n + lasting] * (1 + n % 3)}, n, (n * 7919) % 700) for n in range(600)])
    for n in range(600):
        done = host.commit(store, n)
        assert done.segments <= (FACTOR - 1) * len(TIERS) + 2 + done.alive // TIERS[-1]
        assert len(files.visible) <= done.segments + 3 + FACTOR
        if n % 50 == 0:
            found = rows_of(opened(files).load(n).pieces)
            alive, _ = host.model(n)
            assert alive <= found
            assert len(found) <= 2 * len(alive) + 100


def test_small_and_large_batches_in_turn_are_merged_too() -> None:
    files = FailingFiles()
    store = opened(files)
    host = Host([Batch({"a": [None]}, n, 5_000 if n % 8 == 7 else 0) for n in range(400)])
    written = most = 0
    for n in range(400):
        done = host.commit(store, n)
        written += done.fresh + done.merged
        most = max(most, done.segments)
    assert most <= (FACTOR - 1) * len(TIERS) + 2 + done.alive // TIERS[-1]
    assert written <= 4 * done.alive


def test_an_empty_batch_leaves_no_segment_behind() -> None:
    files = FailingFiles()
    store = opened(files)
    host = Host([Batch({"a": [None]} if n == 0 else {"a": []}, n) for n in range(50)])
    for n in range(50):
        done = host.commit(store, n)
    assert done.segments == 2
    assert done.fresh == done.merged == 0
    assert len(files.visible) == 4


def test_pieces_of_one_table_may_have_different_columns() -> None:
    files = FailingFiles()
    store = opened(files)
    kinds = [pa.int64(), pa.string(), pa.float64()]
    for n in range(30):
        table = pa.table({"x": pa.array([n], pa.int64()).cast(kinds[n % 3])})
        store.commit(n, None, [Piece("a", table)], _Keeping())
    pieces = opened(files).load(29).pieces
    assert sorted(float(x) for piece in pieces for x in piece.table["x"].to_pylist()) == list(range(30))


class _Keeping:
    def bound(self, name: str) -> int:  # noqa: ARG002
        return 0

    def merged(self, name: str, tables: Sequence[pa.Table]) -> Piece | None:
        columns = [table["x"].cast(pa.string()) for table in tables] if "x" in tables[0].column_names else []
        merged = pa.table({"x": pa.chunked_array([c for column in columns for c in column.chunks])})
        return Piece(name, merged if columns else pa.concat_tables(tables))


def test_rows_for_ever_stay_when_those_they_were_merged_with_are_dead() -> None:
    files = FailingFiles()
    store = opened(files)
    host = Host([Batch({"a": [None if n % 2 else 10]}, n) for n in range(30)])
    for n in range(30):
        host.commit(store, n)
    assert {row[2] for row in host.model(29)[0]} == {None}
    assert host.model(29)[0] <= rows_of(opened(files).load(29).pieces)


def test_a_dead_piece_is_not_loaded_though_its_segment_stays_and_never_comes_back() -> None:
    files = FailingFiles()
    store = opened(files)
    host = Host([Batch({"a": [5], "c": [None]}, 0), Batch({}, 9), Batch({}, 1)])
    for n, names in enumerate([["a", "c"], ["c"], ["c"]]):
        host.commit(store, n)
        assert [piece.name for piece in opened(files).load(n).pieces] == names


def test_what_is_left_of_large_segments_is_merged() -> None:
    store = opened(FailingFiles())
    large = [Batch({"a": [20] * 9, "c": [None]}, 0, TIERS[-1] // 9) for _ in range(10)]
    host = Host([*large, Batch({}, 20), Batch({}, 20)])
    done = [host.commit(store, n) for n in range(12)]
    assert not any(one.merged for one in done[:10])
    assert done[9].segments == 10
    assert done[10].merged > 0
    assert done[11].segments <= 3


def test_a_batch_that_was_done_again_with_other_rows_is_read_anew(run: Run) -> None:
    files = copy.deepcopy(run.before[3])
    ours, theirs = opened(files), opened(files)
    ours.load(2)
    run.host.commit(ours, 3)
    theirs.load(2)
    other = regular(6, filling=5)
    for n in (3, 4):
        other.commit(theirs, n)
    assert rows_of(ours.load(4).pieces) == rows_of(opened(files).load(4).pieces)


def test_batches_may_have_gaps() -> None:
    files = FailingFiles()
    host = regular(100)
    store = opened(files)
    for n in (3, 7, 8, 90):
        host.commit(store, n)
    assert opened(files).latest() == 90
    assert opened(files).latest(89) == 8
    store = opened(files)
    store.load(8)
    again = host.commit(store, 90)
    assert [state.batch for state in store.since(7, 90) or ()] == [8, 90]
    assert store.since(5, 90) is None
    assert again.segments == 3


# ---- how much is written -----------------------------------------------------------------------------------


def test_as_much_is_written_for_each_batch_when_the_state_is_ten_times_as_large() -> None:
    files = FailingFiles()
    store = opened(files, tiers=(8_000, 64_000), kept=8)
    host = Host([Batch({"a": [None]}, 0, 2_000) for _ in range(11 * 64)])
    cycle = 64  # so many batches make one segment that is not merged any more
    sizes = []
    for n in range(11 * cycle):
        done = host.commit(store, n)
        assert done.fresh < 3_500
        sizes.append((files.written, done.alive))
    small = (sizes[2 * cycle - 1][0] - sizes[cycle - 1][0]) / cycle
    large = (sizes[11 * cycle - 1][0] - sizes[10 * cycle - 1][0]) / cycle
    assert sizes[-1][1] > 5 * sizes[2 * cycle - 1][1]
    assert sizes[10 * cycle][1] > 9 * sizes[cycle][1]
    assert large < 1.1 * small


def test_what_is_larger_than_all_tiers_is_never_written_again() -> None:
    assert to_merge([5 << 20] * 100) == []
    assert to_merge([5 << 20, *[3 << 20] * 8, 100]) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert to_merge([*[1 << 20, 100] * 7, 5]) == [1, 3, 5, 7, 9, 11, 13, 14]


# ---- crashes -----------------------------------------------------------------------------------------------


@dataclass
class Run:
    """An undisturbed run: the files before each batch, and the states after each."""

    host: Host
    before: list[FailingFiles]
    states: list[State]

    def check(self, found: State) -> None:
        wanted = self.states[found.batch]
        assert found.words == wanted.words
        assert rows_of(found.pieces) == rows_of(wanted.pieces)


def undisturbed(host: Host) -> Run:
    files = FailingFiles()
    store = opened(files)
    run = Run(host, [], [])
    for n in range(len(host.batches)):
        run.before.append(copy.deepcopy(files))
        host.commit(store, n)
        run.states.append(opened(files).load(n))
        alive, ever = host.model(n)
        assert alive <= rows_of(run.states[n].pieces) <= ever
    return run


def go_on(run: Run, files: FailingFiles, known: int, until: int, reached: list[int]) -> None:
    """As a host does after a start: loads the last state that it knows, and does the next batches."""
    store = opened(files)
    if known >= 0:
        run.check(store.load(known))
    for n in range(known + 1, until):
        run.host.commit(store, n)
        reached.append(n)


def crashes(run: Run, files: FailingFiles, known: int, until: int) -> Iterator[tuple[FailingFiles, int]]:
    """What there is after a crash at each operation, and the last batch that the host knows then."""
    for k in itertools.count():
        broken = copy.deepcopy(files)
        broken.operations, broken.crash_at = [], k
        reached = [known]
        try:
            go_on(run, broken, known, until, reached)
        except Crash:
            yield broken, reached[-1]
        else:
            return


def check_recovery(run: Run, files: FailingFiles, known: int, until: int) -> None:
    go_on(run, files, known, until, [])
    for n in (until - 2, until - 1):
        run.check(opened(files).load(n))
    assert not [path for path in files.visible if path.endswith(".tmp")]


MERGING = 11
"""A batch of `regular` that merges segments and removes others."""


@pytest.fixture(scope="module")
def run() -> Run:
    return undisturbed(regular(MERGING + 4))


def test_the_batch_that_is_crashed_merges_and_removes(run: Run) -> None:
    steps: list[str] = []
    store = opened(copy.deepcopy(run.before[MERGING]), mark=steps.append)
    store.load(MERGING - 1)
    assert run.host.commit(store, MERGING).merged > 0
    assert list(dict.fromkeys(steps)) == ["segment write", "segment sync", "segment rename", "folder sync", "remove"]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.name)
@pytest.mark.parametrize("batch", [0, 1, 7, MERGING])
def test_nothing_is_lost_or_twice_after_a_crash_at_any_operation(run: Run, batch: int, outcome: Outcome) -> None:
    count = 0
    for broken, known in crashes(run, run.before[batch], batch - 1, batch + 2):
        check_recovery(run, broken.after_crash(outcome), known, batch + 4)
        count += 1
    assert count > 10


@pytest.mark.parametrize("outcome", OUTCOMES[1:6:2], ids=lambda outcome: outcome.name)
def test_nothing_is_lost_or_twice_when_the_recovery_crashes_too(run: Run, outcome: Outcome) -> None:
    for broken, known in crashes(run, run.before[MERGING], MERGING - 1, MERGING + 1):
        left = broken.after_crash(outcome)
        for again, later in crashes(run, left, known, MERGING + 1):
            check_recovery(run, again.after_crash(outcome), later, MERGING + 2)


def test_a_killed_process_recovers_on_files_that_nobody_lost(run: Run) -> None:
    """Without a crash of the machine another process sees all that was written, also what is not durable yet."""
    for broken, known in crashes(run, run.before[MERGING], MERGING - 1, MERGING + 1):
        broken.crash_at = None
        check_recovery(run, broken, known, MERGING + 4)


def test_a_batch_done_again_goes_on_from_the_state_before_it(run: Run) -> None:
    files = copy.deepcopy(run.before[8])
    store = opened(files)
    store.load(7)
    for n in (8, 8, 9, 9, 9):
        run.host.commit(store, n)
        run.check(opened(files).load(n))
    files = FailingFiles()
    store = opened(files)
    for n in (0, 0, 1):
        run.host.commit(store, n)
        run.check(opened(files).load(n))


@pytest.mark.parametrize("since", ["merging", "segment write", "segment rename"])
def test_an_attempt_that_was_given_up_and_still_goes_on_does_no_harm(run: Run, since: str) -> None:
    files = copy.deepcopy(run.before[MERGING])

    def others(step: str) -> None:
        if step == since:
            go_on(run, files, MERGING - 1, MERGING + 2, [])

    late = opened(files, mark=others)
    late.load(MERGING - 1)
    if since == "segment write":
        run.host.commit(late, MERGING)
    else:
        if since == "merging":
            others(since)
        with pytest.raises(NoState, match="a later batch has been committed since"):
            run.host.commit(late, MERGING)
    for n in (MERGING, MERGING + 1):
        run.check(opened(files).load(n))
    check_recovery(run, files, MERGING + 1, MERGING + 4)


# ---- refusals ----------------------------------------------------------------------------------------------


def _refused(files: FailingFiles, batch: int, words: str) -> None:
    with pytest.raises((BrokenSegment, NoState), match=words):
        opened(files).load(batch)


def test_what_is_no_segment_or_torn_is_refused(run: Run) -> None:
    files = copy.deepcopy(run.before[10])
    path = f"{FOLDER}/9.segment"
    data = files.visible[path].data
    for torn, words in [
        (b"", "has only 0 bytes"),
        (b"PAR1" * 100, "does not end as segments do"),
        (data[:-1], "does not end as segments do"),
        (data[-200:], "another checksum"),
        (data[:-40] + b"?" + data[-39:], "another checksum"),
        (bytes(100) + data[100:], "is damaged: its rows of `a`"),
        (data[:8] + data, "is damaged: its rows of `a`"),
        (data.replace(b'{"format":4', b'{"format":5'), "another checksum"),
    ]:
        files.visible[path].data = torn
        _refused(files, 9, words)


def test_a_state_that_is_not_there_is_refused(run: Run) -> None:
    files = copy.deepcopy(run.before[10])
    _refused(files, 70, "state after batch 70 is not in /state/0, or not all of it.*files of batches .*8, 9")
    _refused(FailingFiles(), 0, r"files of batches \(none\)")
    del files.visible[f"{FOLDER}/8.segment"]
    _refused(files, 9, "8.segment")


def test_a_segment_of_another_run_is_refused(run: Run) -> None:
    files = copy.deepcopy(run.before[10])
    other = FailingFiles()
    store = opened(other)
    for n in range(9):
        regular(10, filling=5).commit(store, n)
    files.visible[f"{FOLDER}/8.segment"] = other.visible[f"{FOLDER}/8.segment"]
    _refused(files, 9, "8.segment is not the segment that batch 9 went on from")


def test_a_batch_that_has_no_state_to_go_on_from_is_refused(run: Run) -> None:
    files = copy.deepcopy(run.before[10])
    with pytest.raises(NoState, match="there is one of batch 9; load it first"):
        run.host.commit(opened(files), 10)
    store = opened(files)
    store.load(9)
    with pytest.raises(NoState, match="batch 3 cannot go on from batch 9"):
        run.host.commit(store, 3)


def test_files_of_others_stay(run: Run) -> None:
    files = copy.deepcopy(run.before[10])
    for name in ("notes.txt", "1.segment.bak", "x.segment", ".1.segment.0.tmp", ".10.segment.0.tmp"):
        files.write(f"{FOLDER}/{name}", [b"mine"])
    store = opened(files)
    store.load(9)
    run.host.commit(store, 10)
    left = {path.rpartition("/")[2] for path in files.visible}
    assert left >= {"notes.txt", "1.segment.bak", "x.segment", ".10.segment.0.tmp"}
    assert ".1.segment.0.tmp" not in left


# ---- on real files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["posix", "arrow", "mock"])
def test_a_store_on_real_files(run: Run, kind: str, tmp_path: Any) -> None:
    files: Files
    if kind == "mock":
        files, folder = files_of("mock:///state/0")
    else:
        files, folder = files_of(f"{tmp_path}/state/0")
        assert isinstance(files, Posix)
    if kind == "arrow":
        files = ArrowFiles(pa.fs.LocalFileSystem())
    store = Store(files, folder, tiers=TIERS, kept=3)
    for n in range(MERGING + 2):
        run.host.commit(store, n)
        run.check(Store(files, folder).load(n))
    assert len(files.names(folder)) == len(store.batches()) < 6


def test_pieces_are_used_where_they_lie(tmp_path: Any) -> None:
    table = pa.table({"x": pa.array(range(100_000), pa.int64())})
    Store(Posix(), str(tmp_path)).commit(0, {}, [Piece("a", table), Piece("b", table)], _Keeping())
    before = pa.total_allocated_bytes()
    state = Store(Posix(), str(tmp_path)).load(0)
    assert pa.total_allocated_bytes() - before < 100_000
    assert all(piece.table.equals(table) for piece in state.pieces)
    assert all(chunk.buffers()[1].address % 8 == 0 for piece in state.pieces for chunk in piece.table["x"].chunks)
