"""This package holds the sinks of live queries: folders, tables, functions and the console."""
