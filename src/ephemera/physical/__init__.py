"""This package turns plans and facts into what engines run: how each rule is joined, and in which order."""
