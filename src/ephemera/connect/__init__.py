"""This package connects programs with what stands outside: files as a whole or not at all, and tables."""
