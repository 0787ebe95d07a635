"""This package runs physical plans in one process or in several places; it does not know Spark."""
