"""This package holds what every stage needs and that knows no stage: places, diagnostics, time, tree walks."""
