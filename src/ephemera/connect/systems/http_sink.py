"""This module posts answers to a server of HTTP as JSON lines, one request a commit, at least once.

The request names the run and the commit in `Idempotency-Key`, so that a server that heeds it takes each once. What may
pass is tried again, later and later: no connection, 408, 425, 429 and 5xx, and `Retry-After` is heeded. Answers go
to the server that the address names and nowhere else: one that redirects them refuses them.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ephemera.connect.http_opener import http_opener, retry_after
from ephemera.connect.systems.address import PASSWORDS, Address, NoAnswer, WrongAddress, secret_of
from ephemera.formats.answers import AnswerBatch
from ephemera.terms.errors import excerpt

PATIENCE = 30.0
_TRIES = 12
_LONGEST = 60.0
_PASSING = (408, 425, 429)
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A server of HTTP."""

    address: Address
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if len(self.address.hosts) != 1:
            raise WrongAddress(f"`{self.address}` names no host; write such as http://127.0.0.1:8080/answers")
        if self.address.user is not None:
            raise WrongAddress(
                f"`{self.address}`: no user is sent from an address; leave it out, and put `Basic …`, with user and "
                f"password in base64, into {PASSWORDS['http']}"
            )

    @property
    def name(self) -> str:
        return str(self.address)

    def open_target(self, identity: str, position: Any = None) -> OpenHttpTarget:
        del position
        return OpenHttpTarget(self.address, identity, self.sleep)


class OpenHttpTarget:
    """A server that gets answers."""

    position: Any = None

    def __init__(self, address: Address, identity: str, sleep: Callable[[float], None]) -> None:
        self._address = address
        self._identity = identity
        self._sleep = sleep
        self._opener = http_opener()

    def encode(self, answers: AnswerBatch) -> bytes:
        return answers.lines()

    def put(self, load: bytes, number: int) -> None:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"{self._identity}-{number}"}
        secret = secret_of("http")
        if secret is not None:
            headers["Authorization"] = secret
        pause = 0.5
        for attempt in range(1, _TRIES + 1):
            request = urllib.request.Request(self._address.text, load, headers, method="POST")
            asked: float | None = None
            try:
                with self._opener.open(request, timeout=PATIENCE):
                    return
            except urllib.error.HTTPError as error:
                with error:
                    self._judge(error)
                    why, asked = f"{error.code} {error.reason}", retry_after(error.headers.get("Retry-After"))
            except (ValueError, http.client.InvalidURL):  # whose text may have the secret
                raise NoAnswer(
                    f"{self._address} cannot be sent as it is: a URL has no blanks, and what "
                    f"{PASSWORDS['http']} holds is one line of Latin-1"
                ) from None
            except (OSError, http.client.HTTPException) as error:
                why = str(getattr(error, "reason", "") or error) or type(error).__name__
            if attempt == _TRIES:
                raise NoAnswer(f"{self._address} takes no answers: {why}, {_TRIES} times")
            self._sleep(min(asked if asked is not None else pause, _LONGEST))
            pause = min(pause * 2, _LONGEST)

    def _judge(self, error: urllib.error.HTTPError) -> None:
        """Raises what will not pass."""
        if error.code >= 500 or error.code in _PASSING:
            return
        refusal = f"{self._address} refuses answers: {error.code} {error.reason}"
        place = error.headers.get("Location")
        if 300 <= error.code < 400 and place is not None:
            refusal += f", they should go to {excerpt(place, _SHOWN)}; if so, write that address"
        raise NoAnswer(refusal)

    def close(self) -> None:
        """There is no connection to be closed."""
