"""One page over HTTP, for this machine only: a loopback address, a secret in the address, no other host's name."""

from __future__ import annotations

import hmac
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from wsabi.pages.live import LivePage

__all__ = ["served"]

LOOPBACK = "127.0.0.1"
HOSTS = (LOOPBACK, "localhost")  # names by which a browser may call this machine; the port may be that of a tunnel
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address holds the secret
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@contextmanager
def served(page: LivePage, port: int = 0) -> Iterator[str]:
    """Serve a page on the loopback address while the block runs; yields the address, with its secret.

    Parameters
    ----------
    port : 0 is any that is free.

    Raises
    ------
    OSError
        If the port is in use, or not allowed.
    """
    token = secrets.token_urlsafe(18)
    server = _Server((LOOPBACK, port), _Handler)
    server.page, server.token = page, token
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True, name="wsabi watch")
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}/{token}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=2.0)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    page: LivePage
    token: str

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a browser that went away in the middle of an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "wsabi", ""
    timeout = 10.0  # seconds for a request that never ends

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        try:
            host, address = urlsplit(f"//{self.headers.get('Host', '')}").hostname, urlsplit(self.path)
        except ValueError:
            return self._send(HTTPStatus.BAD_REQUEST, "This is no address.\n")
        if host not in HOSTS:
            return self._send(HTTPStatus.FORBIDDEN, "This page is for this machine only.\n")
        _, token, *rest = f"{address.path}/".split("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return self._send(HTTPStatus.FORBIDDEN, "This address is not the one that wsabi watch has shown.\n")
        if rest == [""]:  # without the last slash the page would ask for its changes in the wrong place
            return self._send(HTTPStatus.MOVED_PERMANENTLY, "", Location=f"/{token}/")
        if rest[0] == "":
            return self._send_page()
        if rest[0] == "now":
            changed = self.server.page.changed(dict(parse_qsl(address.query)))
            status = HTTPStatus.OK if changed else HTTPStatus.NO_CONTENT
            return self._send(status, changed, "application/json")
        return self._send(HTTPStatus.NOT_FOUND, "There is nothing here.\n")

    def _send_page(self) -> None:
        nonce = secrets.token_urlsafe(12)
        policy = (
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        html = self.server.page.html(nonce)
        self._send(HTTPStatus.OK, html, "text/html", **{"Content-Security-Policy": policy})

    def _send(self, status: HTTPStatus, text: str, kind: str = "text/plain", **more: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {**HEADERS, **more}.items():
            self.send_header(name, value)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: the terminal is for the run."""
