"""This package drives engines in one process: over a history, over tables, and live."""
