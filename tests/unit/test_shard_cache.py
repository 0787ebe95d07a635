"""This module shows which shards a worker process keeps between batches, and which go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ephemera.spark.live.task import STALE, QueryKey, ShardCache

A, B, C = (QueryKey("session", name) for name in "abc")
ALL = ("a", "b", "c")


@dataclass
class After:
    """A shard, as far as a cache looks at it."""

    batch: int


def shard(batch: int = 0) -> Any:
    return After(batch)


def test_queries_at_work_keep_their_shards_though_others_run_between() -> None:
    cache, own, other = ShardCache(), shard(), shard()
    cache.keep(A, ALL, 0, 0, own)
    cache.keep(B, ALL, 0, 0, other)
    assert cache.take(A, 0, 0) is own
    assert cache.take(B, 0, 0) is other


def test_levels_and_places_are_told_apart() -> None:
    cache = ShardCache()
    shards = {(level, place): shard() for level in range(2) for place in range(2)}
    for at, one in shards.items():
        cache.keep(A, ALL, *at, one)
    assert all(cache.take(A, *at) is one for at, one in shards.items())


def test_a_shard_that_was_taken_is_gone_until_it_has_committed() -> None:
    cache = ShardCache()
    cache.keep(A, ALL, 0, 0, shard())
    assert cache.take(A, 0, 0) is not None
    assert cache.take(A, 0, 0) is None


def test_what_a_query_kept_that_has_ended_goes_with_the_next_batch_of_its_session() -> None:
    cache = ShardCache()
    elsewhere = QueryKey("another session", "a")
    cache.keep(A, ALL, 0, 0, shard())
    cache.keep(elsewhere, ALL, 0, 0, shard())
    cache.keep(B, ("b",), 0, 0, shard())
    assert cache.kept() == [elsewhere, B]


def test_beyond_the_limit_the_query_goes_that_was_at_work_least_recently() -> None:
    cache = ShardCache(queries=2)
    for query in (A, B, A, C):
        cache.keep(query, ALL, 0, 0, shard())
    assert cache.kept() == [A, C]


def test_a_shard_that_another_process_runs_by_now_goes_after_a_while() -> None:
    cache, other = ShardCache(), shard()
    cache.keep(A, ALL, 0, 0, shard())
    cache.keep(B, ALL, 0, 0, other)
    cache.keep(A, ALL, 0, 1, shard(STALE))
    assert cache.take(A, 0, 0) is not None
    cache.keep(A, ALL, 0, 0, shard())
    cache.keep(A, ALL, 0, 1, shard(STALE + 1))
    assert cache.take(A, 0, 0) is None
    assert cache.take(B, 0, 0) is other  # batches are counted for each query
