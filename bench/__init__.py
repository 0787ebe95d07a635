"""This package measures Ephemera; `scripts/bench` runs it."""
