"""This package reads and writes events at the edges: JSON lines, tables in stories."""
