"""This package asks NEXMark's queries of Ephemera and of DuckDB, over one made-up stream."""
