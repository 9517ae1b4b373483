"""A UM-Bridge server of two models, for tests: ``python umbridge_server.py PORT``."""

from __future__ import annotations

import sys
import time
from typing import Any

import umbridge


class Posterior(umbridge.Model):  # type: ignore[misc]
    """log N(a; 1, 1) + log N((b, c); 0, 1) without constants, of inputs (a) and (b, c), with its gradient."""

    def __init__(self) -> None:
        super().__init__("posterior")

    def get_input_sizes(self, config: dict[str, Any]) -> list[int]:
        return [1, 2]

    def get_output_sizes(self, config: dict[str, Any]) -> list[int]:
        return [1]

    def __call__(self, parameters: list[list[float]], config: dict[str, Any]) -> list[list[float]]:
        time.sleep(config.get("seconds", 0.0))
        if parameters[0][0] > config.get("wall", 1e9):
            raise ValueError("the solver did not converge")
        return [[-0.5 * ((parameters[0][0] - 1.0) ** 2 + parameters[1][0] ** 2 + parameters[1][1] ** 2)]]

    def gradient(
        self, out_wrt: int, in_wrt: int, parameters: list[list[float]], sens: list[float], config: dict[str, Any]
    ) -> list[float]:
        centre = [[1.0], [0.0, 0.0]][in_wrt]
        return [sens[0] * (c - x) for x, c in zip(parameters[in_wrt], centre, strict=True)]

    def supports_evaluate(self) -> bool:
        return True

    def supports_gradient(self) -> bool:
        return True


class Forward(umbridge.Model):  # type: ignore[misc]
    """y = (a, a + b, a + 2b) of inputs (a, b), with its gradient."""

    def __init__(self) -> None:
        super().__init__("forward")

    def get_input_sizes(self, config: dict[str, Any]) -> list[int]:
        return [2]

    def get_output_sizes(self, config: dict[str, Any]) -> list[int]:
        return [3]

    def __call__(self, parameters: list[list[float]], config: dict[str, Any]) -> list[list[float]]:
        a, b = parameters[0]
        return [[a, a + b, a + 2 * b]]

    def gradient(
        self, out_wrt: int, in_wrt: int, parameters: list[list[float]], sens: list[float], config: dict[str, Any]
    ) -> list[float]:
        return [sum(sens), sens[1] + 2 * sens[2]]

    def supports_evaluate(self) -> bool:
        return True

    def supports_gradient(self) -> bool:
        return True


if __name__ == "__main__":
    umbridge.serve_models([Posterior(), Forward()], int(sys.argv[1]))
