"""This module shows that a signal is heeded whichever thread of the process takes it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PATIENCE = 60.0
WAITS = """
import signal, threading
from ephemera.cli.signals import Stopped, heeded

with heeded():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # so it is another thread that takes it
    lock = threading.Lock()
    lock.acquire()
    try:
        print("waits", flush=True)
        lock.acquire()
    except Stopped:
        print("stopped", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_signal_that_another_thread_takes_ends_the_command() -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "waits\n"
            process.send_signal(signal.SIGTERM)
            assert process.communicate(timeout=PATIENCE)[0] == "stopped\n"
        finally:
            process.kill()
