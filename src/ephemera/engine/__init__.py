"""This package runs physical plans: in one process, and later on Spark."""
