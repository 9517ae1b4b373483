"""``wsabi.from_umbridge`` against a real server in a process of its own, which may go away."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wsabi
from bridging import needs

pytestmark = [needs("umbridge"), pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")]
SERVER = Path(__file__).with_name("umbridge_server.py")
BOX = [(-9.0, 11.0), (-10.0, 10.0), (-10.0, 10.0)]
EXACT = 1.5 * np.log(2 * np.pi) - 3 * np.log(20.0)
DATA = np.array([0.9, 2.1, 2.9])


class Server:
    """A server that can be ended and begun again at the same address."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://localhost:{self.port}"
        self.begin()

    def begin(self) -> None:
        command = [sys.executable, "-W", "ignore", str(SERVER), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                with urllib.request.urlopen(f"{self.url}/Info", timeout=1.0):
                    return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server does not start")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


def test_log_z_with_the_gradient_of_the_server(server: Server) -> None:
    model = wsabi.from_umbridge(server.url, "posterior", BOX)
    assert model.log_likelihood(np.array([2.0, 1.0, -1.0])) == -1.5
    assert model.grad is not None
    assert_allclose(model.grad(np.array([2.0, 1.0, -1.0])), [-1.0, -1.0, 1.0])
    assert abs(wsabi.integrate(model, budget=60, rng=0).log_z - EXACT) < 0.01


def test_a_forward_model_with_data_and_an_adjoint(server: Server) -> None:
    model = wsabi.from_umbridge(
        server.url,
        "forward",
        {"a": (-5.0, 5.0), "b": (-5.0, 5.0)},
        log_likelihood=lambda y: -0.5 * float(np.sum((y[0] - DATA) ** 2)) / 0.1**2,
        sensitivity=lambda y: [(DATA - y[0]) / 0.1**2],
    )
    point = {"a": 0.8, "b": 1.2}
    y = np.array([0.8, 2.0, 3.2])
    assert model.log_likelihood(point) == pytest.approx(-50.0 * np.sum((y - DATA) ** 2))
    residual = (DATA - y) / 0.1**2
    assert model.grad is not None
    assert_allclose(model.grad(point), [residual.sum(), residual[1] + 2 * residual[2]])


def test_config_threads_and_pickles(server: Server) -> None:
    model = wsabi.from_umbridge(server.url, "posterior", BOX, config={"seconds": 0.01})
    with ThreadPoolExecutor(4) as threads:
        assert wsabi.integrate(model, budget=12, rng=0, tol=0.0, executor=threads).n_evals == 12
    x = np.array([2.0, 1.0, -1.0])
    assert pickle.loads(pickle.dumps(model.log_likelihood))(x) == model.log_likelihood(x)


def test_an_error_of_the_model_is_a_failed_evaluation(server: Server) -> None:
    model = wsabi.from_umbridge(server.url, "posterior", BOX, config={"wall": 8.0})
    with pytest.raises(wsabi.LikelihoodError, match=r"the model 'posterior' of the UM-Bridge server at .* failed"):
        wsabi.integrate(model, budget=40, rng=0, grad=None)
    result = wsabi.integrate(model.log_likelihood, model.prior, budget=40, rng=0, on_error="exclude")
    assert np.all(result.points[:, 0] <= 8.0)


def test_a_server_that_goes_away_and_comes_back(server: Server, tmp_path: Path) -> None:
    model = wsabi.from_umbridge(server.url, "posterior", BOX)
    options: dict[str, Any] = {"budget": 40, "rng": 0, "journal": tmp_path / "run.db", "tol": 0.0}

    def end_it(state: Any) -> None:
        if state.n_evals == 15:
            server.end()

    with pytest.raises(wsabi.LikelihoodError, match=f"ConnectionError .*at {server.url} does not answer") as caught:
        wsabi.integrate(model, callback=end_it, **options)
    assert caught.value.result is not None
    assert caught.value.result.n_evals == 15
    with pytest.raises(ConnectionError, match=f"no UM-Bridge server answers at {server.url}"):
        wsabi.from_umbridge(server.url, "posterior", BOX)
    server.begin()
    result = wsabi.integrate(model, **options)
    assert result.n_evals == 40
    assert_allclose(result.points[:15], caught.value.result.points)


def test_what_is_wrong_is_said(server: Server) -> None:
    with pytest.raises(ValueError, match=r"has no model 'prior'; it has 'posterior', 'forward'"):
        wsabi.from_umbridge(server.url, "prior", BOX)
    with pytest.raises(ValueError, match=r"prior has 1 parameters; the model 'posterior' has inputs of sizes \[1, 2\]"):
        wsabi.from_umbridge(server.url, "posterior", BOX[:1])
    with pytest.raises(ValueError, match=r"outputs of sizes \[3\], which is not one number"):
        wsabi.from_umbridge(server.url, "forward", BOX[:2])
    with pytest.raises(ValueError, match="sensitivity belongs to log_likelihood"):
        wsabi.from_umbridge(server.url, "posterior", BOX, sensitivity=lambda y: y)
