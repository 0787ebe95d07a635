"""This package reads from and writes to other systems: Kafka, PostgreSQL, MQTT, HTTP, and those that plug-ins know."""
