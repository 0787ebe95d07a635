from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ephemera.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    opened = session("local[2]", more={"spark.sql.shuffle.partitions": "2"})
    yield opened
    opened.stop()
