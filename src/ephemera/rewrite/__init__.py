"""This package rewrites plans before they are run, and says what of the input they need."""
