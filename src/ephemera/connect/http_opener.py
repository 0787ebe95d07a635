"""This module opens requests of HTTP where they are addressed and nowhere else: a redirection is told as it is.

It also reads when a server that is busy wants to be asked again.

A POST that was sent elsewhere would become a GET without what it carries, and its secret would go to whoever is there.
"""

from __future__ import annotations

import time
import urllib.request
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """What an answer of 3xx asks for is not done: it is an `HTTPError`, as other refusals are."""

    def redirect_request(self, *_: Any) -> None:
        return None


def http_opener() -> urllib.request.OpenerDirector:
    """What opens requests; proxies are those of the environment."""
    return urllib.request.build_opener(NoRedirect)


def retry_after(text: str | None) -> float | None:
    """Seconds to wait, from a number of them or a date; None if it is neither."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
        date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError, OSError):
        return None
