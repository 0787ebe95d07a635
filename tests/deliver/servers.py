"""Servers of the tests' own, on 127.0.0.1: one of HTTP that fails as it is told to, and one of mail."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class WebServer:
    """Answers each POST with the next of some answers, then with 200; `hang` waits until the server ends.

    So does an answer with a header `Endless`, when it has said something.
    """

    def __init__(self, answers: list[tuple[int, dict[str, str]] | str]) -> None:
        self.answers = answers
        self.got: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.headers.append(dict(self.headers))
                outer.paths.append(self.path)
                answer = outer.answers.pop(0) if outer.answers else (200, {})
                if answer == "hang":
                    outer.over.wait()
                    return
                if answer == "cut":
                    self.connection.close()
                    return
                if isinstance(answer, str):
                    raise ValueError(answer)
                code, headers = answer
                if code < 300:
                    outer.got.append(body)
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                # A careless server repeats what it was told, secrets too.
                self.wfile.write(f"you said {self.headers.get('Authorization', 'nothing')}".encode())
                if "Endless" in headers:
                    self.wfile.flush()
                    outer.over.wait()

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/take"


@contextmanager
def web(*answers: tuple[int, dict[str, str]] | str) -> Iterator[WebServer]:
    one = WebServer(list(answers))
    thread = threading.Thread(target=one.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield one
    finally:
        one.over.set()
        one.server.shutdown()
        one.server.server_close()
        thread.join()


class _Mail(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        is_data, lines = False, list[str]()
        for raw in self.rfile:
            line = raw.decode().rstrip("\r\n")
            if is_data:
                is_data = line != "."
                if is_data:
                    lines.append(line)
                else:
                    self.server.mails.append("\n".join(lines))  # type: ignore[attr-defined]
                    self.wfile.write(b"250 taken\r\n")
                continue
            word = line.split(" ")[0].upper()
            if word == "RCPT":
                answers = self.server.answers  # type: ignore[attr-defined]
                self.wfile.write((answers.pop(0) if answers else "250 ok").encode() + b"\r\n")
            elif word == "DATA":
                is_data = True
                self.wfile.write(b"354 go on\r\n")
            elif word == "QUIT":
                self.wfile.write(self.server.goodbye.encode() + b"\r\n")  # type: ignore[attr-defined]
                return
            else:
                self.wfile.write(b"250 ok\r\n")


@contextmanager
def mail(*answers: str, goodbye: str = "221 bye") -> Iterator[tuple[int, list[str]]]:
    """The port of a mail server, and the mails that it has; it answers to recipients as told."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Mail) as server:
        server.daemon_threads = True
        mails: list[str] = []
        server.mails, server.answers, server.goodbye = mails, list(answers), goodbye  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1], mails
        finally:
            server.shutdown()
            thread.join()
