"""This module tells the first reason why rows could not be used, while somebody reads the answers of a data frame.

Whoever reads them is in this process, and the rows are not. In a session of this process an accumulator brings the
reason here. Spark Connect has none, but sends what is observed of a frame when it has been computed.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from ephemera.base.errors import EphemeraWarning
from ephemera.engine.cluster.message import BadInput, UndefinedHead
from ephemera.spark.runtime.exchange import is_a

_LETTER = "letter"


def accumulator(frame: DataFrame) -> Accumulator[str]:
    """What tasks add reasons to; the first that comes here is told."""
    return frame.sparkSession.sparkContext.accumulator("", _FirstReason())


class _FirstReason(AccumulatorParam[str]):
    """The first reason why something could not be used; where the session is, there is a warning with it."""

    def zero(self, value: str) -> str:
        del value
        return ""

    def addInPlace(self, value1: str, value2: str) -> str:  # noqa: N802 - as Spark calls it
        if not value1 and value2 and TaskContext.get() is None:
            _tell(value2)
        return value1 or value2


def observed(shipped: DataFrame) -> DataFrame:
    """Shipments on Spark Connect: the first letter among them is told when all of them have been computed."""
    from pyspark.sql.connect.observation import Observation  # noqa: PLC0415 - it needs gRPC, which only clients have

    letter = f.min(f.when(is_a(BadInput, UndefinedHead), f.decode("load", "utf-8"))).alias(_LETTER)
    observation = Observation()
    found: DataFrame = shipped.observe(observation, letter)  # type: ignore[arg-type]
    observation._result = _Letter()  # where the client puts what comes
    return found


class _Letter(dict[str, Any]):
    """What was observed of shipments."""

    def update(self, given: Mapping[str, Any]) -> None:  # type: ignore[override]
        """What the server sends, once for each time that the frame is computed."""
        if given.get(_LETTER) and not self:
            _tell(reason_of(given[_LETTER]))
        super().update(given)


def reason_of(letter: bytes | str) -> str:
    """The reason in a letter."""
    return str(json.loads(letter)["reason"])


def _tell(reason: str) -> None:
    text = f"some rows could not be used, the first: {reason}; `run_all(…).bad` and `.undefined` have them"
    # It may be told by a thread of Spark's, which must go on even where warnings are errors.
    with suppress(EphemeraWarning):
        warnings.warn(text, EphemeraWarning, stacklevel=2)
