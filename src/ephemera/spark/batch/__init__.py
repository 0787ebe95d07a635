"""This package runs programs over stored events on Spark, and gives out their answers."""
