"""A headless Chromium that tests can drive, by its own protocol over two pipes; it needs no other package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHY_SKIPPED = "no Chromium found (Debian: apt-get install chromium)"
PATIENCE = 60.0  # seconds for one answer


class Browser:
    """One page of one browser.

    Attributes
    ----------
    complaints : what the page wrote to the console as a warning or an error, threw, or failed to load.
    """

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [
            "/bin/bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "-", CHROMIUM, "--headless",
            "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--no-first-run", f"--user-data-dir={folder / 'profile'}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            command, pass_fds=(to_browser, from_browser), env=os.environ | {"HOME": str(folder)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session = b"", 0, ""
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            answer = self._next(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
        raise TimeoutError(f"no answer to {method}.")

    def _next(self, end: float) -> dict[str, Any]:
        """The next message; events that complain are kept."""
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer.")
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has ended."
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        method, content = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(content["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and content["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(content["args"]))
        elif method == "Log.entryAdded" and content["entry"]["level"] in ("error", "warning"):
            self.complaints.append(json.dumps(content["entry"]))
        return message

    def look(self, width: int, *, dark: bool = False, height: int = 900) -> None:
        """Set the width of the window in pixels, and whether the reader wants a dark page."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=features)
        self.settle()

    def settle(self) -> None:
        """Wait until what has changed is laid out and drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def open(self, address: str) -> None:
        """Load a page, and forget what others complained of."""
        self.complaints.clear()
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def run(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, expression: str, seconds: float = 30.0) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(expression):
            assert time.monotonic() < end, f"still not true after {seconds:g} s: {expression}"
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press and release a key, such as Tab."""
        codes = {"Tab": 9, "Enter": 13, "ArrowRight": 39}
        for kind in ("rawKeyDown", "char" if key == "Enter" else "", "keyUp"):
            if kind:
                more = {"text": "\r"} if kind == "char" else {}
                self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key], **more)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write a picture of the page as .png."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """End the browser."""
        self._session = ""
        try:
            self.send("Browser.close")
            self._process.wait(timeout=10)
        except (AssertionError, OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
