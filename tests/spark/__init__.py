"""Tests of programs on Spark."""
