"""This module shows what people are told of jobs that failed on Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ephemera.rules.outcome import Endless
from ephemera.spark.runtime.failures import failure, is_input, told_by

JAVA = """An error occurred while calling o61.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


def raised(error: Exception) -> BaseException:
    def fail() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(Exception, match="ephemera-failure") as found:
        list(told_by("engine", fail()))
    return found.value


def test_what_a_worker_raised_comes_with_its_notes() -> None:
    error = ZeroDivisionError("division by zero")
    error.add_note("in rule 2 (late)")
    error.add_note('the last event taken in was {"event": "order"}')
    wrapped = RuntimeError(f"Job aborted\n{raised(error)}\n\tat org.apache.spark.Something")
    assert str(failure(wrapped)) == (
        'ZeroDivisionError: division by zero; in rule 2 (late); the last event taken in was {"event": "order"}'
    )


def test_what_is_raised_on_purpose_speaks_for_itself() -> None:
    assert str(failure(raised(Endless("the recursion does not end")))) == "the recursion does not end"


def test_of_java_only_the_last_cause_is_told() -> None:
    assert str(failure(RuntimeError(JAVA))) == "Spark failed: No space left on device; --debug shows all"
    assert not is_input(RuntimeError(JAVA))


def test_input_that_is_not_there_is_told_as_such() -> None:
    error = RuntimeError("[PATH_NOT_FOUND] Path does not exist: file:/none.jsonl. SQLSTATE: 42K03")
    assert str(failure(error)) == "cannot read the input: Path does not exist: file:/none.jsonl."
    assert is_input(error)


def test_an_error_without_words_has_a_name() -> None:
    assert str(failure(RuntimeError())) == "Spark failed: RuntimeError; --debug shows all"
