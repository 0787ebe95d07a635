"""This module reads the state of all shards of a query, and writes that of others, which go on from it.

Nothing of the old state is touched, and nothing of the new one counts before somebody says so. So whoever is killed on
the way begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ephemera.base.lazy_dataclass import dataclass
from ephemera.engine.cluster.change_spread import Spread
from ephemera.engine.cluster.routing import DistributedProgram
from ephemera.engine.cluster.shard import Shard, stored_engine
from ephemera.engine.engine import Engine
from ephemera.engine.state.segment_store import Store

StoreAt = Callable[[int, int], Store]
"""Where the shard of a level and a place has its state."""


@dataclass(frozen=True, slots=True)
class StoredEngines:
    """The engines of a program as they were after a batch; there were none before the first."""

    spread: DistributedProgram
    stores: StoreAt
    batch: int | None

    def __call__(self, group: int) -> Iterator[Engine]:
        """Those of a group, of all places, one after the other."""
        if self.batch is None:
            return
        level = self.spread.stages.groups[group].level
        for place in range(self.spread.places):
            engine = stored_engine(self.spread, group, place, self.stores(level, place), self.batch)
            if engine is not None:
                yield engine


def levels_of(spreads: Sequence[DistributedProgram]) -> int:
    """How many levels of shards some programs have together."""
    return max((spread.stages.levels for spread in spreads), default=0)


def write_shards(programs: Sequence[Spread], stores: StoreAt, batch: int) -> int:
    """Writes the state of all shards as that after a batch; says how many bytes."""
    spreads: Mapping[int, DistributedProgram] = {one.program.number: one.program for one in programs}
    written = 0
    for level in range(levels_of([*spreads.values()])):
        own: dict[int, dict[tuple[int, int], Engine]] = {}
        for one in programs:
            for number, group in enumerate(one.program.stages.groups):
                if group.level != level:
                    continue
                for place, engine in one.engines(number).items():
                    own.setdefault(place, {})[one.program.number, number] = engine
        for place in range(next(iter(spreads.values())).places):
            shard = Shard(spreads, level, place, stores(level, place))
            written += shard.found(batch, own.get(place, {})).written
    return written
