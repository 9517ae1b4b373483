"""The page over HTTP: for this machine, by its whole address, and only what has changed."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import wsabi
from wsabi.pages.live import LivePage
from wsabi.pages.of_file import RunFile
from wsabi.pages.serving import _Server, served


class Served:
    """A page that is served, and what it answers."""

    def __init__(self, page: LivePage, address: str) -> None:
        self.page, self.address = page, address
        parts = urlsplit(address)
        self.host, self.port, self.path = parts.hostname, parts.port, parts.path

    def get(self, path: str, *, method: str = "GET", host: str | None = None) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port or 0, timeout=10)
        try:
            connection.request(method, path, headers={} if host is None else {"Host": host})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), dict(answer.getheaders())
        finally:
            connection.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Served]:
    with wsabi.Integrator(wsabi.Gaussian([0.0]), rng=0, journal=tmp_path / "a<b.db"):
        page = LivePage(RunFile(tmp_path / "a<b.db"))
        page.refresh()
        with served(page) as address:
            yield Served(page, address)


def test_the_page_and_what_has_changed(site: Served) -> None:
    status, page, headers = site.get(site.path)
    assert status == 200
    assert "nothing has been evaluated" in page
    assert "<title>wsabi: a&lt;b.db</title>" in page
    nonce = headers["Content-Security-Policy"].split("nonce-")[1].split("'")[0]
    assert f'<script nonce="{nonce}">' in page
    assert site.get(site.path)[1].count(nonce) == 0  # another one each time
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    status, changed, _ = site.get(f"{site.path}now")
    assert status == 200
    parts = json.loads(changed)
    assert sorted(parts) == ["main", "state", "summary"]
    seen = "&".join(f"{name}={part['version']}" for name, part in parts.items())
    assert site.get(f"{site.path}now?{seen}")[:2] == (204, "")
    seen = seen.replace(parts["state"]["version"], "0")
    assert list(json.loads(site.get(f"{site.path}now?{seen}")[1])) == ["state"]


def test_addresses_are_not_guessed(site: Served) -> None:
    with served(site.page) as other:
        assert urlsplit(other).path != site.path
    assert len(site.path) >= 26  # 144 random bits


@pytest.mark.parametrize("path", ["/", "/now", "/wrong/", "/wrong/now", "//", "/favicon.ico", "/%C3%A9/"])
def test_a_wrong_token_shows_nothing(site: Served, path: str) -> None:
    status, text, _ = site.get(path)
    assert status == 403
    assert "wsabi watch" in text
    assert "evaluat" not in text


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "127.0.0.1.example.org", "192.168.0.7", ""])
def test_another_host_is_refused(site: Served, host: str) -> None:
    """A page of somebody else may let its own name point to this machine: its requests still carry that name."""
    status, text, _ = site.get(site.path, host=host)
    assert (status, text) == (403, "This page is for this machine only.\n")


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:1"])
def test_this_machine_may_be_reached_through_a_tunnel(site: Served, host: str) -> None:
    assert site.get(site.path, host=host)[0] == 200


def test_what_is_not_there_and_what_is_no_address(site: Served) -> None:
    assert site.get(f"{site.path}else")[0] == 404
    assert site.get(site.path, host="[")[0] == 400
    status, _, headers = site.get(site.path.rstrip("/"))
    assert (status, headers["Location"]) == (301, site.path)
    assert site.get(site.path, method="POST")[0] == 501
    status, text, headers = site.get(site.path, method="HEAD")
    assert (status, text) == (200, "")
    assert int(headers["Content-Length"]) > 1000


def test_only_one_address_of_this_machine_is_served(site: Served) -> None:
    with pytest.raises(ConnectionRefusedError):  # another address of the loopback device, and so not all of them
        socket.create_connection(("127.0.0.2", site.port or 0), timeout=2).close()


def test_a_port_in_use_is_an_error(site: Served) -> None:
    with pytest.raises(OSError, match="in use"), served(site.page, site.port or 0):
        pass


def test_a_browser_that_goes_away_is_not_an_error(site: Served, capfd: pytest.CaptureFixture[str]) -> None:
    """It may close its side at any time; other faults are shown."""
    for kind in (BrokenPipeError, KeyError):
        try:
            raise kind("gone")
        except (BrokenPipeError, KeyError):
            _Server.handle_error(object.__new__(_Server), None, ("127.0.0.1", 1))
    err = capfd.readouterr().err
    assert "KeyError" in err
    assert "BrokenPipe" not in err
