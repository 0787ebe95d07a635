"""This module has what functions and classes need that take messages: what one is, and how to say that it is not taken.

>>> from ephemera import transports
>>> transports.TryLater("the desk is closed", after=3600.0, is_down=True).after
3600.0
"""

from __future__ import annotations

from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import Refused, Settings, Transport, TryLater

__all__ = ["Outgoing", "Refused", "Settings", "Transport", "TryLater"]
