"""This module lets live runs from the command line offer metrics: `--metrics`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import click

from ephemera.base.installed import NotInstalled, need
from ephemera.cli.files import WRONG_COMMAND

if TYPE_CHECKING:
    from ephemera.connect.metrics import Page


def check_metrics(where: str | None, cure: str) -> None:
    """Ends the command if metrics are asked for, and what offers them is not installed, which `cure` does."""
    try:
        if where is not None:
            need("prometheus_client", "--metrics", cure)
    except NotInstalled as error:
        _fail(str(error))


@contextmanager
def offered(where: str, page: Page) -> Iterator[None]:
    """A page of metrics for whoever asks."""
    from ephemera.connect.metrics import NoMetrics, address

    try:
        host, wanted = address(where)
        port, stop = page.serve(wanted, host)
    except NoMetrics as error:
        _fail(str(error))
    click.echo(f"metrics at http://{host}:{port}/metrics", err=True)
    try:
        yield
    finally:
        stop()


def _fail(message: str) -> NoReturn:
    click.echo(message, err=True)
    raise click.exceptions.Exit(WRONG_COMMAND)
