from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ephemera.spark.runtime.session import session

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""Jobs of a few rows are sooner done without what pays for large ones."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    opened = session("local[2]", more=SMALL)
    yield opened
    opened.stop()
