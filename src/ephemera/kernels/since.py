"""This module lets a rule read of a history only what ends after some time, as if the stream began there.

Rules that come later may read histories that others have filled before. What is older is left out run by run; a run
that has some of both is cut once. In its place there may be a past of the rule's own, from an archive.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from ephemera.kernels.history import History, Run


class Since:
    """A history without what ended by some time; it is searched as a history is."""

    def __init__(self, history: History, stamp: str, bound: int, past: History | None = None) -> None:
        """`stamp` is what has to be behind the bound; of what is not, only the `past` counts."""
        self._history = history
        self._past = past
        self._stamp = stamp
        self._bound = bound
        self._cut: dict[int, Run] = {}
        """The runs of which only a part counts, by their numbers."""

    @classmethod
    def of(cls, history: History, stamp: str, bound: int, past: History | None = None) -> History:
        """The same as whoever searches histories takes it."""
        return cast("History", cls(history, stamp, bound, past))

    def __len__(self) -> int:
        behind = (batch[self._stamp] > self._bound for batch in self._history.batches())
        return sum(int(np.count_nonzero(one)) for one in behind) + (len(self._past) if self._past is not None else 0)

    def flush(self) -> list[Run]:
        """The runs, or the parts of them, that count."""
        found: list[Run] = [] if self._past is None else list(self._past.flush())
        cut: dict[int, Run] = {}
        for run in self._history.flush():
            if run.last(self._stamp) <= self._bound:
                continue
            if run.first(self._stamp) > self._bound:
                found.append(run)
                continue
            part = self._cut.get(run.number)
            if part is None or part.step != run.step:
                batch = run.batch.take(run.batch[self._stamp] > self._bound)
                part = Run(batch, run.step, run.number, {s: int(batch[s].max()) for s in self._history.stamps})
            cut[run.number] = part
            found.append(part)
        self._cut = cut
        return found
