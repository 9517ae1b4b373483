"""The square-root warp ℓ = α + ½ℓ̃² and the moments of ℓ under its two approximations (paper eqs. (7)-(12))."""

from __future__ import annotations

from typing import Literal

import numpy as np

from wsabi._core.types import Array
from wsabi.settings import Method

__all__ = ["latent_values", "likelihood_moments", "offset"]


def offset(likelihood: Array, alpha: float | Literal["auto"]) -> float:
    """α, from ℓ (N,) scaled to a maximum of one: ``alpha`` × min ℓ; "auto" is zero.

    Notes
    -----
    The paper takes 0.8 min ℓ (section 3, footnote) and finds the choice unimportant. It is not: the model returns to α
    far from data, so α·π(unexplored) is added to Z, a bias that more samples elsewhere never remove (errors of 2e-3
    to 7e-3 on four-dimensional mixtures where α = 0 reaches 1e-4). A likelihood falls to zero far away, and so does
    the model with α = 0.
    """
    return 0.0 if alpha == "auto" else alpha * float(np.min(likelihood))


def latent_values(likelihood: Array, alpha: float, method: Method) -> Array:
    """What the GP sees, (N,): ℓ̃ = √(2(ℓ − α)) (paper section 3, unnumbered), or ℓ itself for Bayes-Hermite."""
    if method == "bq":
        return likelihood
    return np.sqrt(2.0 * np.maximum(likelihood - alpha, 0.0))


def likelihood_moments(method: Method, alpha: float, m_tilde: Array, c_tilde: Array) -> tuple[Array, Array]:
    """Mean m(x) and variance C(x, x) of ℓ from those of ℓ̃, each of the shape of ``m_tilde``.

    L: m = α + ½m̃²,          C = m̃² C̃            paper eqs. (9) and (10)
    M: m = α + ½(m̃² + C̃),   C = ½C̃² + m̃² C̃     paper eqs. (11) and (12)
    """
    if method == "bq":
        return m_tilde, c_tilde
    squared = np.square(m_tilde)
    if method == "wsabi-l":
        return alpha + 0.5 * squared, squared * c_tilde
    return alpha + 0.5 * (squared + c_tilde), (0.5 * c_tilde + squared) * c_tilde
