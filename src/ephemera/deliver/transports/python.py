"""This module calls a function of a module with each message: `"shop.audit:take"`."""

from __future__ import annotations

from importlib import import_module

from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import Refused, Settings


class Imported:
    """A function by the name of its module and its own."""

    def __init__(self, settings: Settings) -> None:
        place = str(settings.get("function", ""))
        module, colon, name = place.partition(":")
        if not colon or not module or not name:
            raise Refused(f'`{place}` is no function: write "module:function"')
        try:
            self._function = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise Refused(f"`{place}` is not there: {error}") from None

    def send(self, message: Outgoing) -> None:
        self._function({**message.body, "key": message.key})

    def close(self) -> None:
        """There is nothing to free."""
