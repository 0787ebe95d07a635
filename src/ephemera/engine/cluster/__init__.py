"""This package runs programs in several places: messages, routing, admission, and shards."""
