from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from ephemera.spark.runtime.connect_session import names_server
from ephemera.spark.runtime.session import session
from tests.services import alone, fresh, kafka, postgres, shared  # noqa: F401 - fixtures

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}
"""Jobs of a few rows are sooner done without what pays for large ones."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # `test_connect` runs some of these tests on a server of Spark Connect.
    opened = SparkSession.builder.getOrCreate() if names_server() else session("local[2]", more=SMALL)
    yield opened
    opened.stop()
