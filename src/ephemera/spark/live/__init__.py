"""This package runs live queries on Structured Streaming, batch by batch."""
