"""This module ends commands in good order when a signal comes: Ctrl-C, or SIGTERM, as those send it who run services.

The first signal raises `Stopped` wherever the command is, unless it has asked for signals to be noted only. Whatever
comes then does not disturb the end. What started ignored, as in the background of a script, stays ignored.

Of two signals that come at once another thread may take both, and nothing would wake this one where it waits, for Spark
or for input. So what came is told to a thread that wakes it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM
_HEEDED = (signal.SIGINT, signal.SIGTERM)
_WAKING = getattr(signal, "SIGURG", None)
"""It does nothing but wake whom it is sent to; processes that nobody told otherwise ignore it."""


class Stopped(KeyboardInterrupt):
    """A signal that ends the command."""


class _Signals:
    """What has come so far, and whether it may still raise."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.is_over = False
        self.handlers: dict[signal.Signals, Any] = {}
        """What this process does about each, once it heeds them."""
        self.most_noted = 0
        """So many signals are only noted."""

    def take(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.seen.append(number)
        if not self.is_over and len(self.seen) > self.most_noted:
            self.is_over = True
            raise Stopped


_signals = _Signals()


@contextmanager
def heeded() -> Iterator[None]:
    """From here on signals end the command in good order, until the process ends."""
    for number in _HEEDED:
        ignored = signal.getsignal(number) is signal.SIG_IGN
        _signals.handlers[number] = signal.SIG_IGN if ignored else _signals.take
    heed_again()
    try:
        with _woken():
            yield
    finally:
        _signals.is_over = True  # what is done as the process ends is not disturbed


@contextmanager
def _woken() -> Iterator[None]:
    """While this lasts, each signal wakes the main thread."""
    if _WAKING is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    main = threading.get_ident()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def wake() -> None:
        with os.fdopen(reader, "rb", buffering=0) as told:
            while number := told.read(1):
                if number[0] != _WAKING:
                    signal.pthread_kill(main, _WAKING)

    waking_before = signal.signal(_WAKING, lambda *_: None)
    told_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=wake, name="ephemera-signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(told_before)
        os.close(writer)
        thread.join()
        signal.signal(_WAKING, waking_before)


def heed_again() -> None:
    """Takes the signals back from Spark, whose session would raise at each Ctrl-C; nothing if nobody heeds them."""
    for number, handler in _signals.handlers.items():
        signal.signal(number, handler)


def heed_no_more() -> None:
    """The process is about to end, as it would: a signal that comes now would end it as one that nobody heeded."""
    for number in _signals.handlers:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def noted(most: int) -> Iterator[list[int]]:
    """While this lasts, so many signals raise nothing; the list of them grows. They count when it ends."""
    before = {number: signal.getsignal(number) for number in _HEEDED}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _signals.take)
    _signals.most_noted = most
    try:
        yield _signals.seen
    finally:
        if not _signals.seen:  # else those who noted one are about to end, and more change nothing
            _signals.most_noted = 0
        for number, handler in before.items():
            signal.signal(number, handler)


def raise_if_seen() -> None:
    """Raises `Stopped` if a signal was noted and has not raised yet."""
    if _signals.seen and not _signals.is_over:
        _signals.is_over = True
        raise Stopped


def was_stopped() -> bool:
    """Whether a signal has come."""
    return bool(_signals.seen)


def exit_code(*, is_live: bool) -> int:
    """The exit code of a command that a signal has ended: a live run has no end of its own, so SIGTERM is its end."""
    if _signals.seen and _signals.seen[0] == signal.SIGTERM:
        return 0 if is_live else TERMINATED
    return INTERRUPTED
