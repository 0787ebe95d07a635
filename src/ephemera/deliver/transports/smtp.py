"""This module sends messages by mail: the recipient is an address, and the key is in the headers.

With `tls` the server has to show a certificate for its name before it gets a password. What it does when it has taken a
mail, such as to hang as it is told goodbye, changes nothing: nobody gets a mail again for that.
"""

from __future__ import annotations

import json
import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage

from ephemera.deliver.encryption import authority_of, check_secret
from ephemera.deliver.message import Outgoing
from ephemera.deliver.transport import TIMEOUT, Refused, Settings, TryLater


class Smtp:
    """A mail server; a connection for each message."""

    def __init__(self, settings: Settings) -> None:
        self._host = str(settings.get("host", "localhost"))
        tls = bool(settings.get("tls", False))
        check_secret("smtp", settings, [self._host], tls=tls)
        authority = authority_of("smtp", settings, tls=tls)
        try:
            self._trusted = ssl.create_default_context(cafile=authority) if tls else None
        except OSError as error:
            raise Refused(f"{authority} holds no certificate of an authority: {error}") from None
        self._port = int(settings.get("port", 587 if self._trusted is not None else 25))
        self._sender = str(settings.get("sender", "ephemera@localhost"))
        self._subject = settings.get("subject")
        self._user, self._secret = settings.get("user"), settings.get("secret")
        self._timeout = float(settings.get("timeout", TIMEOUT))
        for name, text in (("sender", self._sender), ("subject", str(self._subject or ""))):
            if not text.isprintable():
                raise Refused(f"`{name}` of `smtp` has a sign that no header can have, such as a line break")

    def send(self, message: Outgoing) -> None:
        try:
            mail = self._mail(message)
        except ValueError as error:  # a line break in an address
            raise Refused(f"`{message.recipient}` is no address of mail: {error}") from None
        try:
            server = self._connected()
        except smtplib.SMTPResponseException as error:
            raise _judged(error.smtp_code, error.smtp_error) from None
        except (smtplib.SMTPException, OSError) as error:
            raise TryLater(f"the mail server does not answer: {error}", is_down=True) from None
        try:
            self._give(server, mail)
        finally:
            with suppress(smtplib.SMTPException, OSError):
                server.quit()

    def _connected(self) -> smtplib.SMTP:
        server = smtplib.SMTP(self._host, self._port, timeout=self._timeout)
        try:
            if self._trusted is not None:
                server.starttls(context=self._trusted)
            if self._user is not None and self._secret is not None:
                server.login(str(self._user), str(self._secret))
        except BaseException:
            server.close()
            raise
        return server

    def _give(self, server: smtplib.SMTP, mail: EmailMessage) -> None:
        try:
            server.send_message(mail)
        except smtplib.SMTPRecipientsRefused as error:
            raise _judged(*next(iter(error.recipients.values()))) from None
        except smtplib.SMTPResponseException as error:
            raise _judged(error.smtp_code, error.smtp_error) from None
        except (smtplib.SMTPNotSupportedError, ValueError) as error:  # signs in an address that the server cannot read
            raise Refused(f"the mail cannot be sent: {error}") from None
        except (smtplib.SMTPException, OSError) as error:  # it was there, so the mail may be to blame
            raise TryLater(f"the mail server broke off: {error}") from None

    def _mail(self, message: Outgoing) -> EmailMessage:
        mail = EmailMessage()
        mail["From"], mail["To"] = self._sender, message.recipient
        if len(mail["To"].addresses) != 1:
            raise ValueError("it is to be one, and what is computed adds no others")
        mail["Subject"] = str(self._subject or message.body.get("event", "message"))
        mail["Message-ID"] = f"<{message.key}@ephemera.invalid>"
        mail["Idempotency-Key"] = message.key
        text = json.dumps(json.loads(message.text()), ensure_ascii=False, indent=2) + "\n"
        mail.set_content(text.encode("utf-8", "backslashreplace").decode())
        return mail

    def close(self) -> None:
        """Each message has a connection of its own."""


def _judged(code: int, told: bytes | str) -> Refused | TryLater:
    """Mail servers say 4xx for later, and 5xx for never; what is neither is no word of a mail server."""
    text = told.decode("utf-8", "replace") if isinstance(told, bytes) else told
    reason = f"answer {code}: {text}"
    return Refused(reason) if 500 <= code < 600 else TryLater(reason, is_down=code == 421)
