"""``wsabi.from_prior_transform``: functions written for dynesty and for UltraNest give the same log Z here."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import wsabi
from bridging import imported, needs

COV = np.array([[1.0, 0.6], [0.6, 1.0]])
INVERSE, LOG_DET = np.linalg.inv(COV), float(np.linalg.slogdet(2 * np.pi * COV)[1])
EXACT = -2 * np.log(20.0)


def loglike(x: np.ndarray) -> float:
    return float(-0.5 * x @ INVERSE @ x - 0.5 * LOG_DET)


def prior_transform(u: np.ndarray) -> np.ndarray:
    return 20.0 * u - 10.0


def loglike_together(X: np.ndarray) -> np.ndarray:
    return -0.5 * np.einsum("ni,ij,nj->n", X, INVERSE, X) - 0.5 * LOG_DET


def test_log_z_by_points_and_by_rows() -> None:
    one = wsabi.from_prior_transform(loglike, prior_transform, 2)
    many = wsabi.from_prior_transform(loglike_together, prior_transform, 2, names=["a", "b"], vectorized=True)
    assert many.names == ("a", "b")
    for model in (one, many):
        assert abs(wsabi.integrate(model, budget=60, rng=0).log_z - EXACT) < 0.02


@needs("dynesty")
@pytest.mark.filterwarnings("ignore")
def test_dynesty_agrees() -> None:
    sampler = imported("dynesty").NestedSampler(loglike, prior_transform, 2, nlive=60, rstate=np.random.default_rng(0))
    sampler.run_nested(print_progress=False, dlogz=0.5)
    theirs = sampler.results
    result = wsabi.integrate(wsabi.from_prior_transform(loglike, prior_transform, 2), budget=80, rng=0)
    assert abs(result.log_z - theirs.logz[-1]) < 5 * theirs.logzerr[-1]


@needs("ultranest")
@pytest.mark.filterwarnings("ignore")
def test_ultranest_agrees() -> None:
    ultranest = imported("ultranest")
    logging.getLogger("ultranest").setLevel(logging.ERROR)
    names = ["a", "b"]
    sampler = ultranest.ReactiveNestedSampler(names, loglike_together, prior_transform, vectorized=True)
    theirs = sampler.run(min_num_live_points=60, show_status=False, viz_callback=False, dlogz=0.5)
    model = wsabi.from_prior_transform(loglike_together, prior_transform, len(names), names=names, vectorized=True)
    result = wsabi.integrate(model, budget=80, rng=0)
    assert abs(result.log_z - theirs["logz"]) < 5 * theirs["logzerr"]
