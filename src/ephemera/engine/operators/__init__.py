"""This package holds the operators of rules: what matches, joins, waits, looks into windows and derives."""
