"""This module keeps shards in a worker process between the batches of live queries, so that they need not be loaded.

What is kept is a cache: a shard that is not there is loaded from its files, with the same answers. Its key is the
query, the level and the place. A shard goes

- when its query has ended, which the next batch of another query of the same session tells;
- when its query has done many batches without it, since another process runs it by now;
- when more queries are kept than a limit: those of the query that was at work least recently.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from threading import Lock

from ephemera.engine.cluster.shard import Shard

QUERIES = 16
"""A process keeps the shards of so many queries."""
STALE = 50
"""A shard that its query has not asked for in so many batches is forgotten."""


@dataclass(frozen=True, slots=True)
class QueryKey:
    """A start of a live query, and the session that it runs in."""

    session: str
    run: str


@dataclass(slots=True)
class ShardCache:
    """The shards of a process; it may be asked by several threads."""

    queries: int = QUERIES
    _kept: dict[QueryKey, dict[tuple[int, int], Shard]] = field(default_factory=dict)
    """By query, that of the last batch last; then by level and place."""
    _lock: Lock = field(default_factory=Lock)

    def take(self, query: QueryKey, level: int, place: int) -> Shard | None:
        """Gives a shard away, so that one that fails in its batch is not found again."""
        with self._lock:
            return self._kept.get(query, {}).pop((level, place), None)

    def keep(self, query: QueryKey, running: Collection[str], level: int, place: int, shard: Shard) -> None:
        """Keeps a shard after a batch; `running` are the starts that are at work in the session of its query."""
        with self._lock:
            own = self._kept.pop(query, {})
            own[level, place] = shard
            self._kept[query] = {at: one for at, one in own.items() if (one.batch or 0) + STALE >= (shard.batch or 0)}
            for other in [k for k in self._kept if k.session == query.session and k != query and k.run not in running]:
                del self._kept[other]
            while len(self._kept) > self.queries:
                del self._kept[next(iter(self._kept))]

    def kept(self) -> list[QueryKey]:
        """The queries of which something is kept, that of the last batch last."""
        with self._lock:
            return [query for query, own in self._kept.items() if own]
