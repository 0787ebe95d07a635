"""This package runs programs live in one process, from systems to systems, and goes on after a crash."""
