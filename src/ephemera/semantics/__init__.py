"""This package is the oracle: what a program means, slow and obvious."""
