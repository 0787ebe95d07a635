"""This module reads files of XML messages on Spark."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from ephemera.engine.cluster.message import ReadCount
from ephemera.formats.json_events import BadEvent
from ephemera.formats.reading import read_event
from ephemera.formats.xml_messages import messages, placed
from ephemera.spark.batch.job import Job, start
from ephemera.spark.read.scan import Input, read, source_of
from ephemera.spark.runtime.exchange import is_a
from tests.spark.running import collected
from tests.spark.sources import arriving, by_python, compiled, everything, judged


def test_files_of_messages_give_what_they_give_the_local_engine(spark: SparkSession, tmp_path: Path) -> None:
    good = "".join(f"<event time='{k}'><order><id>{k}</id><qty>3</qty></order></event>" for k in range(200))
    (tmp_path / "a.xml").write_text(f"<events>{good}</events>")
    (tmp_path / "b c%20.xml").write_text(f"<events>{good}<event/><event time='x'><order/></event></events>")
    (tmp_path / "c.xml").write_text(f"<events>{good[:700]}")
    names = ["a.xml", "b c%20.xml", "c.xml"]
    one = compiled()
    found = [
        placed(read_event(m, one), p) for name in names for p, m in messages([(tmp_path / name).read_bytes()], name)
    ]
    (source,) = read(spark, [Input(str(tmp_path), "xml")], one.rules.resolved.catalogue, everything(one))
    assert judged(by_python(source, one)) == judged(found)
    assert len(judged(found)[1]) == 3
    started = start(spark, [Job(one)], [Input(str(tmp_path / "*.xml"))])
    assert started.as_numbers
    (came,) = collected(started)
    assert Counter(bad["reason"] for bad in came.bad) == Counter(b.reason for b in found if isinstance(b, BadEvent))
    counted = started.shipped.where(is_a(ReadCount)).groupBy().sum("count").first()
    assert counted is not None
    assert counted[0] == len(found)


def test_messages_with_moments_make_answers_have_some(spark: SparkSession, tmp_path: Path) -> None:
    message = "<event time = '1970-01-01T00:00:0{}Z'><order><id>a</id><qty>3</qty></order></event>"
    (tmp_path / "a.xml").write_text(f"<events>{message.format('1')}</events>")
    (tmp_path / "b.xml").write_text(f"<events>{message.format('x')}</events>")
    assert not start(spark, [Job(compiled())], [Input(str(tmp_path / "a.xml"))]).as_numbers
    assert start(spark, [Job(compiled())], [Input(str(tmp_path / "b.xml"))]).as_numbers


def test_a_stream_of_files_of_messages_is_read(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    message = "<event time='1'><order><id>a</id><qty>3</qty></order></event>"
    (tmp_path / "events" / "a.xml").write_text(message)
    one = compiled()
    schema = spark.read.format("binaryFile").load(str(tmp_path / "events")).schema
    frame = spark.readStream.format("binaryFile").schema(schema).load(str(tmp_path / "events"))
    source = source_of(frame, "documents", one.rules.resolved.catalogue, everything(one))
    found = by_python(arriving(spark, source, tmp_path), one)
    assert judged(found) == judged([read_event(m, one) for _, m in messages([message.encode()], "a.xml")])
