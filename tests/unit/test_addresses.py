"""Addresses hold no passwords, and what is wrong with one is told without repeating what may be a secret."""

from __future__ import annotations

import pytest

from ephemera.connect.systems.address import WrongAddress, address, shown


@pytest.mark.parametrize(
    "text",
    [
        "kafka://me:hunter2@host/orders",
        "kafka://me:hun/ter2@host/orders",
        "kafka://me:hun?ter2@host/orders",
        "kafka://me:hun?x=ter2@host/orders",
        "kafka://me:hun#ter2@host/orders",
        "kafka://me:hun@ter2/x@host:9092/orders",
        "kafka://one:9092,me:hun/ter2@two/orders",
        "kafka//me:hunter2@host/orders",
        "me:hun://ter2@host",
        "kafka://host/orders?password=hunter2&flag",
        "kafka://host/orders?format=csv&sasl_secret=hun&ter2",
        "kafka://host/orders?api_token=hunter2",
        "http://host/orders?api_key=hunter2",
        "http://host/orders?ApiKey=hunter2",
        "http://host/orders?x-api-key=hunter2",
        "https://host/orders?sv=2024&sig=hun%2Fter2",
        "https://host/orders?X-Amz-Signature=hunter2",
        "https://host/orders?X-Amz-Credential=hunter2",
        "kafka://host/orders?pass%77ord=hunter2&flag",
        "kafka://host/orders?password=hun#ter2",
        "kafka://host:port/orders?password=hunter2",
        "delta:s3://key:hun/ter2@bucket/orders",
        "delta:s3://key:hun?x=ter2@bucket/orders",
        "delta:?secret=hunter2",
        "delta:orders?token=hunter2&flag",
    ],
)
def test_a_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(WrongAddress) as told:
        address(text)
    assert "hun" not in str(told.value)
    assert "ter2" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("mqtt://127.0.0.1:1883/hall/a@b", "hall/a@b"),
        ("mqtt://[::1]:1883/a@b", "a@b"),
        ("mqtt://me@host:1883/a@b", "a@b"),
        ("kafka://me@one:9092,two:9093/orders", "orders"),
        ("kafka://host/orders?start=2026-03-01T09:00:00Z&columns=a@b", "orders"),
        ("delta:hdfs://name:9000/a@b", "hdfs://name:9000/a@b"),
        ("delta:abfss://box@account/orders", "abfss://box@account/orders"),
        ("delta:a@b", "a@b"),
    ],
)
def test_an_at_sign_elsewhere_is_no_secret(text: str, path: str) -> None:
    assert address(text).path == path


def test_what_is_wrong_is_shown_as_far_as_it_is_no_secret() -> None:
    assert shown("kafka://me@host:9092/orders?format=csv") == "kafka://me@host:9092/orders?format=csv"
    with pytest.raises(WrongAddress, match=r"`kafka://host/orders\?flag`: options are written \?name=value&name=value"):
        address("kafka://host/orders?flag")
    with pytest.raises(WrongAddress, match=r"`kafka://me:…@host/orders` does; leave it out, and set EPHEMERA_KAFKA"):
        address("kafka://me:hun/ter2@host/orders")
