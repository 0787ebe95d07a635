"""This module gives the tests of systems the real servers that they need."""

from tests.services import alone, fresh, kafka, mqtt, postgres, shared

__all__ = ["alone", "fresh", "kafka", "mqtt", "postgres", "shared"]
