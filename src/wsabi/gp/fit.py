"""Hyperparameters: MAP length-scales by analytic gradients, output scale profiled out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wsabi._core.types import Array
from wsabi.errors import NumericalError
from wsabi.gp.exact import log_marginal_likelihood

__all__ = ["FitRecord", "LengthscalePrior", "fit_lengthscales", "starting_points"]

# Length-scales are sought from a thousandth to a thousand standard deviations of the measure: beyond either end the
# function is white noise or a constant to the model, and the end is reported (FitRecord.at_bound).
LOG_BOUND = float(np.log(1e3))


@dataclass(frozen=True)
class LengthscalePrior:
    """log l_d ~ N(½ log D, 1.5²), independent over axes, in standard deviations of the measure.

    Two draws from a D-dimensional measure lie about √(2D) standard deviations apart, so a length-scale of √D sees
    neighbours at any D. A log-sd of 1.5 lets a length-scale lie ten times from that on either side for little over
    one nat: it restrains an axis that the data say nothing about, which type-II maximum likelihood would send to
    infinity, and no other.
    """

    mean: float
    sd: float = 1.5

    @classmethod
    def for_dim(cls, dim: int) -> LengthscalePrior:
        """The default prior in ``dim`` dimensions."""
        return cls(0.5 * float(np.log(dim)))

    def log_density(self, log_lengthscales: Array) -> tuple[float, Array]:
        """log density up to a constant and its gradient (D,)."""
        t = (log_lengthscales - self.mean) / self.sd
        return -0.5 * float(t @ t), -t / self.sd


@dataclass(frozen=True)
class ScaleLimit:
    """A half-Gaussian fence on λ: log(λ/rms ℓ̃) above log 100 costs ½((log λ/rms − log 100)/½)².

    The kernel matrix carries a relative jitter of 1e-10, noise of 1e-5 λ. At λ = 100 rms(ℓ̃) that is a thousandth of the
    function; beyond, a fit to a kinked function would buy itself noise by letting λ and the length-scales run off.
    """

    log_limit: float
    sd: float = 0.5

    @classmethod
    def for_values(cls, l_tilde: Array) -> ScaleLimit:
        """The limit for values ℓ̃ (N,)."""
        rms = float(np.sqrt(np.mean(np.square(l_tilde))))
        return cls(float(np.log(100.0 * rms)) if rms > 0.0 else 0.0)

    def log_density(self, log_scale: float) -> tuple[float, float]:
        """log density up to a constant and its slope in log λ."""
        t = max(0.0, (log_scale - self.log_limit) / self.sd)
        return -0.5 * t * t, -t / self.sd


@dataclass(frozen=True)
class FitRecord:
    """Outcome of one fit of the hyperparameters."""

    n_evals: int
    lengthscales: tuple[float, ...]
    scale: float
    log_evidence: float
    n_iterations: int
    converged: bool
    at_bound: bool


@dataclass(frozen=True)
class Fit:
    """MAP length-scales (D,) with the log marginal likelihood there and the optimiser's outcome."""

    lengthscales: Array
    log_evidence: float
    n_iterations: int
    converged: bool

    @property
    def at_bound(self) -> bool:
        """Whether a length-scale ended at the end of its range."""
        return bool(np.any(np.abs(np.log(self.lengthscales)) > LOG_BOUND - 1e-6))


def starting_points(prior: LengthscalePrior, dim: int, warm: Array | None, n: int) -> list[Array]:
    """Starts (D,) in log length-scale: the last fit, and while data are few (N < 10 D) short, middling and long.

    The marginal likelihood of few data has a second maximum where every point is an island (length-scales to zero);
    a warm start that once fell in would stay. With ten points per axis that maximum is far below the other.
    """
    spread = [np.full(dim, prior.mean + shift) for shift in (-1.0, 0.0, 1.0)]
    if warm is None:
        return spread
    return [np.log(warm), *spread] if n < 10 * dim else [np.log(warm)]


def fit_lengthscales(
    X: Array, l_tilde: Array, *, prior: LengthscalePrior, warm: Array | None = None, max_iterations: int = 30
) -> Fit:
    """Length-scales that maximise log p(ℓ̃ | X, l) + log p(l) within the limit on λ, by L-BFGS-B from every start.

    Parameters
    ----------
    X : (N, D) points in units of the measure's standard deviations.
    l_tilde : (N,) values.
    warm : (D,) length-scales of the last fit.
    """
    from scipy.optimize import minimize  # imported here: it costs a third of `import wsabi`

    def negative(theta: Array) -> tuple[float, Array]:
        try:
            value, gradient, log_scale, scale_gradient = log_marginal_likelihood(X, l_tilde, theta)
        except NumericalError:
            return 1e10, np.zeros_like(theta)
        penalty, slope = prior.log_density(theta)
        fence, fence_slope = limit.log_density(log_scale)
        return -value - penalty - fence, -gradient - slope - fence_slope * scale_gradient

    limit = ScaleLimit.for_values(l_tilde)
    bounds = [(-LOG_BOUND, LOG_BOUND)] * X.shape[1]
    options = {"maxiter": max_iterations, "ftol": 1e-7, "gtol": 1e-3}  # 1e-3 nats per e-fold: far below what matters
    runs = [
        minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        for start in starting_points(prior, X.shape[1], warm, len(X))
    ]
    best = min(runs, key=lambda run: float(run.fun))
    return Fit(np.exp(best.x), log_marginal_likelihood(X, l_tilde, best.x)[0], int(best.nit), bool(best.success))
