"""The coordinates of q, as thin as q may be."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.tuning import TUNING

SLANTED = np.linalg.qr(np.array([[1.0, 0.4, -0.3], [0.2, 1.0, 0.5], [0.7, -0.6, 1.0]]))[0]
COV = np.array([[2.0, 0.3, -0.1], [0.3, 0.5, 0.2], [-0.1, 0.2, 1.0]])

THIN = TUNING.surrogate.thin_width


@pytest.mark.parametrize("thin", [1e-2, 2.0 * THIN, 0.5 * THIN, 1e-8, 1e-11])
def test_a_moved_frame_has_the_covariance_asked_for(thin: float) -> None:
    """In coordinates of the old frame, where no width is small. Its square would be lost below 1e-8."""
    frame = Frame(np.array([0.3, -0.2, 0.1]), SLANTED, np.array([thin, 0.5, 1.0]))
    shift = np.array([0.5, -1.0, 0.2])
    moved = frame.move(shift, COV)
    # The axes are right to ε, and so their component across the ridge to ε over its width.
    tolerance = 1e-12 + 100.0 * np.finfo(np.float64).eps / thin
    factor = (frame.axes.T @ (moved.axes * moved.widths)) / frame.widths[:, None]
    if thin > THIN:
        tolerance = 1e-12 + 100.0 * np.finfo(np.float64).eps / thin**2
    assert_allclose(factor @ factor.T, COV, atol=tolerance)
    assert_allclose(frame.whiten(moved.mean[None, :])[0], shift, atol=1e-12 + 4.0 * np.finfo(np.float64).eps / thin)
    assert np.all(np.diff(moved.widths) > 0.0)
