"""A model behind a UM-Bridge server: a cup that cools down, whose temperatures are compared with data."""

import multiprocessing
import socket
import time
import urllib.request

import numpy as np
import umbridge
from scipy import stats

import wsabi

MINUTES = np.linspace(0.0, 30.0, 7)
SD = 0.5  # kelvin


def temperatures(start: float, rate: float) -> np.ndarray:
    """Of a cup that cools down in a room of 20 degrees: 20 + (start − 20) exp(−rate t)."""
    return 20.0 + (start - 20.0) * np.exp(-rate * MINUTES)


class Cooling(umbridge.Model):
    """The simulator as a UM-Bridge model; it could as well be C++ in a container on another machine."""

    def __init__(self):
        super().__init__("cooling")

    def get_input_sizes(self, config):
        return [2]

    def get_output_sizes(self, config):
        return [len(MINUTES)]

    def __call__(self, parameters, config):
        return [temperatures(*parameters[0]).tolist()]

    def supports_evaluate(self):
        return True


def serve(port: int) -> None:
    umbridge.serve_models([Cooling()], port)


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(port,), daemon=True)
    server.start()
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://localhost:{port}/Info", timeout=1.0).close()
            break
        except OSError:
            time.sleep(0.1)

    data = temperatures(80.0, 0.05) + np.random.default_rng(0).normal(scale=SD, size=len(MINUTES))

    def log_likelihood(outputs: list[np.ndarray]) -> float:
        """log p(data | outputs), outputs the vectors that the model returns."""
        return float(stats.norm(outputs[0], SD).logpdf(data).sum())

    prior = {"start": (50.0, 100.0), "rate": (0.0, 0.2)}
    url = f"http://localhost:{port}"
    result = wsabi.integrate(wsabi.from_umbridge(url, "cooling", prior, log_likelihood=log_likelihood), rng=0)
    print(result)
    server.terminate()

    # The integral around the posterior by Gauss-Legendre nodes, with the simulator called directly.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    reach = 8.0 * result.posterior.std
    a, b = (mean + r * nodes for mean, r in zip(result.posterior.mean, reach, strict=True))
    log_l = np.array([[log_likelihood([temperatures(start, rate)]) for rate in b] for start in a])
    volume = np.prod(reach) / (50.0 * 0.2)
    exact = log_l.max() + np.log(volume * np.sum(np.outer(weights, weights) * np.exp(log_l - log_l.max())))
    print(f"estimate {result.log_z:.4f} ± {result.log_z_std:.4f}")
    print(f"exact    {exact:.4f}")
