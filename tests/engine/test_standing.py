"""This module shows how far sources come with a batch: by their events, by silence, by word, and at the end."""

from __future__ import annotations

import json

import ephemera
from ephemera.engine.cluster.source_progress import (
    PlaceProgress,
    Progress,
    lag_of,
    moved,
    read_standing,
    read_word,
)
from ephemera.kernels.history import FAR

SECOND = 1_000_000
CATALOGUE = ephemera.compile(
    "TIME UNIT 1 sec; EVENT order(id: int); EVENT scan(id: int); EVENT other(id: int);"
    "STREAM shop CARRIES order WATERMARK 3 sec; STREAM floor CARRIES scan WATERMARK 5 sec IDLE 10 sec;"
    "p(i) <- o: order(i), s: scan(i), {o, s} within 5;"
).catalogue


def test_the_latest_event_of_all_readers_moves_a_source() -> None:
    words = [
        PlaceProgress({"shop": 20 * SECOND}, 16 * SECOND, 20 * SECOND),
        PlaceProgress({"shop": 30 * SECOND, "": 7}, 7, 30 * SECOND),
    ]
    found = moved(Progress(), words, CATALOGUE)
    assert found.bounds == {"shop": 27 * SECOND - 1, "": 6}
    assert (found.first, found.last) == (7, 30 * SECOND)
    assert moved(Progress(), reversed(words), CATALOGUE) == found
    later = moved(found, [PlaceProgress({"shop": 21 * SECOND})], CATALOGUE)  # a late one
    assert (later.bound("shop"), later.first, later.last) == (27 * SECOND - 1, 7, 30 * SECOND)
    earlier = moved(later, [PlaceProgress({"floor": 6}, 6, 6)], CATALOGUE)
    assert (earlier.first, earlier.last) == (6, 30 * SECOND)


def test_a_silent_source_moves_with_the_clock_from_where_it_stands() -> None:
    found = moved(Progress(), [PlaceProgress({"floor": 50 * SECOND, "shop": 9}, now=1_000 * SECOND)], CATALOGUE)
    assert found.silent == {"floor": 1_010 * SECOND}
    found = moved(found, [PlaceProgress(now=1_010 * SECOND)], CATALOGUE)
    assert found.bound("floor") == 45 * SECOND - 1
    found = moved(found, [PlaceProgress(now=1_017 * SECOND)], CATALOGUE)
    assert found.bound("floor") == 52 * SECOND - 1
    assert lag_of(found, "floor") == 965 * SECOND + 1
    heard = moved(found, [PlaceProgress({"floor": 53 * SECOND}, now=1_030 * SECOND)], CATALOGUE)
    assert (heard.bound("floor"), heard.silent) == (52 * SECOND - 1, {"floor": 1_040 * SECOND})
    assert heard.bound("shop") == 9 - 3 * SECOND - 1


def test_a_word_closes_an_instant_and_the_end_all_of_them() -> None:
    found = moved(Progress(), [PlaceProgress(closes=4 * SECOND)], CATALOGUE)
    assert {found.bound(name) for name in ("shop", "floor", "")} == {4 * SECOND}
    ended = moved(
        found, [PlaceProgress({"shop": 9 * SECOND}, 5 * SECOND, 9 * SECOND), PlaceProgress(ends=True)], CATALOGUE
    )
    assert {ended.bound(name) for name in ("shop", "floor", "")} == {FAR}
    assert ended.until == 9 * SECOND


def test_a_standing_is_told_and_read() -> None:
    found = moved(Progress(), [PlaceProgress({"floor": 50 * SECOND}, 3, 50, now=7, texts=True)], CATALOGUE)
    assert read_standing(json.loads(json.dumps(found.told()))) == found


# ---- partitions ------------------------------------------------------------------------------------------------


def test_a_partition_that_was_heard_when_nobody_told_the_time_is_silent_from_when_somebody_does() -> None:
    found = moved(Progress(), [PlaceProgress(parts={"floor": {"a": 20 * SECOND, "b": 10 * SECOND}})], CATALOGUE)
    assert found.bound("floor") == 5 * SECOND - 1
    found = moved(found, [PlaceProgress(parts={"floor": {"a": 30 * SECOND}}, now=1_000 * SECOND)], CATALOGUE)
    assert found.bound("floor") == 5 * SECOND - 1
    found = moved(found, [PlaceProgress(parts={"floor": {"a": 40 * SECOND}}, now=1_010 * SECOND)], CATALOGUE)
    assert found.bound("floor") == 5 * SECOND - 1
    found = moved(found, [PlaceProgress(parts={"floor": {"a": 41 * SECOND}}, now=1_011 * SECOND)], CATALOGUE)
    assert found.bound("floor") == 36 * SECOND - 1


def test_what_is_left_to_read_holds_back_the_sources_whose_events_may_stand_there_and_no_others() -> None:
    came = {"shop": {"0/0": 20 * SECOND}, "floor": {"1/0": 20 * SECOND}}
    for behind, reached in {
        None: {"shop": 17 * SECOND - 1, "floor": 15 * SECOND - 1},
        ("", "floor"): {"shop": 17 * SECOND - 1, "floor": -FAR},
        ("", "floor", "shop"): {"shop": -FAR, "floor": -FAR},
    }.items():
        word = PlaceProgress(parts=came, behind={} if behind is None else {"1/1": behind})
        found = moved(Progress(), [word], CATALOGUE)
        assert {name: found.bound(name) for name in reached} == reached
    anywhere = moved(Progress(), [PlaceProgress(parts=came, behind={"2/0": None})], CATALOGUE)
    assert anywhere.bounds.keys().isdisjoint(came)


def test_a_word_is_told_and_read() -> None:
    word = PlaceProgress({"shop": 3}, parts={"floor": {"1/0": 7}}, behind={"1/1": ("", "floor"), "2/0": None})
    assert read_word(json.loads(json.dumps(word.told()))) == word
