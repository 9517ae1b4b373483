"""Hyperparameters keep their parts."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from dense_surrogate import (
    TEMPERATURE,
    a_bundle,
    a_theta,
    a_turn,
    data,
)
from wsabi.adaptive.surrogate.learning import fit_log_surrogate


def test_theta_is_carried_over_when_interactions_come_and_go() -> None:
    """The part that both kernels have is kept; what is new starts at the centre of its prior."""
    Y, values, noise = data(3)
    with_all, centre = a_theta(3), a_bundle(Y, values, noise).theta_mean
    without = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=with_all, learn=False).theta
    assert_array_equal(without.vector, np.append(with_all.lengths, with_all.scales[:2]))
    for n in (1, 2):
        options = {"turn": a_turn(3), "n_interactions": n, "learn": False}
        again = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=without, **options).theta
        expected = [with_all.lengths, centre.sides[:n].ravel(), with_all.scales[:2], centre.scales[2 : 2 + n]]
        assert_array_equal(again.vector, np.concatenate(expected))
        fewer = fit_log_surrogate(Y, values, noise, temperature=TEMPERATURE, theta=with_all, **options).theta
        expected = [with_all.lengths, with_all.sides[:n].ravel(), with_all.scales[: 2 + n]]
        assert_array_equal(fewer.vector, np.concatenate(expected))
