"""This package reads events through Spark, by columns wherever that is safe, and routes them."""
