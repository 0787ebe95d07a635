"""This package turns text into a syntax tree and a syntax tree into text: `parse` and `format`."""
