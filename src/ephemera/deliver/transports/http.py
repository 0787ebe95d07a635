"""This module posts messages by HTTP, with the key that lets receivers drop repeats.

A message was taken if the answer is 2xx, or 409: the receiver has it already. What it says besides is not waited for.
429 and 503 say that it should come later, and `Retry-After` when; where nobody listens it has to, too. 408, 500, other
5xx, no answer in time and a connection that breaks may be the message's fault, and count as attempts. Any other answer,
redirections too, refuses the message.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from urllib.parse import quote, urlsplit

from ephemera.connect.http_opener import NoRedirect, retry_after
from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import TIMEOUT, Refused, Settings, TryLater

_BUSY = (429, 503)
_AGAIN = (408, 425)
_READ = 4096
"""So many bytes of an answer are read for the reason."""
_RECIPIENT = "{recipient}"


class _NobodyThere(OSError):
    """There was no connection, for which no message is to blame."""


class _Plain(http.client.HTTPConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except OSError as error:
            raise _NobodyThere(str(error)) from None


class _Secure(http.client.HTTPSConnection):
    def connect(self) -> None:
        try:
            super().connect()
        except OSError as error:
            raise _NobodyThere(str(error)) from None


class _PlainHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Plain, req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Secure, req)


class Http:
    """POST to a URL; `{recipient}` in it stands for the recipient of the message."""

    def __init__(self, settings: Settings) -> None:
        self._url = _checked(str(settings.get("url", "")))
        self._timeout = float(settings.get("timeout", TIMEOUT))
        self._secret = settings.get("secret")
        self._header = str(settings.get("header", "Authorization"))
        if not all(_is_sendable(text) for text in (self._header, self._secret or "")):
            raise Refused("the header or the secret of `http` has a sign that no header can have, such as a line break")
        self._open = urllib.request.build_opener(NoRedirect, _PlainHandler, _SecureHandler).open

    def send(self, message: Outgoing) -> None:
        headers = {"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": message.key}
        if self._secret is not None:
            bearer = self._header.lower() == "authorization" and " " not in self._secret
            headers[self._header] = f"Bearer {self._secret}" if bearer else str(self._secret)
        body = message.text().encode("utf-8", "backslashreplace")
        try:
            request = urllib.request.Request(self._place(message.recipient), body, headers, method="POST")
            self._open(request, timeout=self._timeout).close()
        except urllib.error.HTTPError as error:
            with error:
                self._judge(error)
        except urllib.error.URLError as error:
            if isinstance(error.reason, _NobodyThere):
                raise TryLater(f"nobody answers: {error.reason}", is_down=True) from None
            raise TryLater(f"the connection broke: {error.reason}") from None
        except TimeoutError:
            raise TryLater(f"no answer in {self._timeout:g} seconds") from None
        except (http.client.HTTPException, OSError) as error:
            raise TryLater(f"the connection broke: {type(error).__name__}: {error}") from None
        except ValueError as error:  # a header or URL that cannot be sent
            raise Refused(f"the message cannot be sent by HTTP: {error}") from None

    def _place(self, recipient: str) -> str:
        if _RECIPIENT in self._url and recipient in (".", ".."):
            raise Refused(f"`{recipient}` leads elsewhere in a URL")
        return self._url.replace(_RECIPIENT, quote(recipient, safe="", errors="backslashreplace"))

    def _judge(self, error: urllib.error.HTTPError) -> None:
        if error.code == 409:
            return
        told = self._told(error)
        reason = f"answer {error.code}" + (f": {told}" if told else "")
        if error.code in _BUSY:
            raise TryLater(reason, after=retry_after(error.headers.get("Retry-After")), is_down=True)
        if error.code in _AGAIN or error.code >= 500:
            raise TryLater(reason, after=retry_after(error.headers.get("Retry-After")))
        raise Refused(reason)

    def _told(self, error: urllib.error.HTTPError) -> str:
        """What an answer says; nothing if that does not come in time: its code is what counts."""
        said, last = bytearray(), time.monotonic() + self._timeout
        try:
            while len(said) < _READ and (byte := error.read(1)):  # what has come is in a buffer; more is waited for
                said += byte
                if time.monotonic() > last:
                    return ""
        except (http.client.HTTPException, OSError, ValueError):
            return ""
        return said.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Each message has a connection of its own."""


def _checked(url: str) -> str:
    """A URL to which something can be posted. Reasons do not repeat it: all of it may be a secret."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_one = False
    if not is_one or not all(sign.isprintable() and sign != " " for sign in url):
        raise Refused('`http` needs a URL that begins with https:// or http://: TRANSPORT … IS http(url="…");')
    if "@" in parts.netloc:
        raise Refused(
            "`http` takes no user and password in its URL: put `Basic …`, with both in base64, into a variable of the "
            'environment, and write secret=env("NAME")'
        )
    return url


def _is_sendable(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return text.isprintable()
