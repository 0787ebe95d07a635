"""This module lets `python -m ephemera` be the `ephemera` command."""

from ephemera.cli.main import main

main()
