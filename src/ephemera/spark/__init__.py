"""This package runs programs on Spark, over history and live; it is imported when one is run, as `pyspark` is large."""
