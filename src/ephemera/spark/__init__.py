"""This package runs programs over history on Spark; whoever runs one imports it then, since `pyspark` is large."""
