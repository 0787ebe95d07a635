"""This package is the command line: `ephemera check`, `fmt`, `explain`, `run`, `test`, `demo`."""
