"""This module is what DuckDB's side of the benchmark of commands runs: statements of SQL, one after the other.

It imports nothing else, since its start counts.

python -m bench.command_duckdb STATEMENT…
"""

from __future__ import annotations

import sys

import duckdb

if __name__ == "__main__":
    with duckdb.connect() as connection:
        for statement in sys.argv[1:]:
            connection.execute(statement)
