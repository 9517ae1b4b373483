"""BBQ, doubly-Bayesian quadrature (Osborne et al., NIPS 2012)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wsabi._core.checks import whole_number
from wsabi._core.linalg import JITTER, solve_lower, solve_upper
from wsabi._core.logspace import safe_log
from wsabi._core.types import Array, Seed, as_generator
from wsabi.baselines.doubly_bayesian_model import DoublyBayesianModel, inverse_log_transform
from wsabi.baselines.recording import Callback, Run, Summary
from wsabi.gp.exact import GP
from wsabi.posterior.closed_form import ClosedForm
from wsabi.priors import Bounded
from wsabi.quadrature.design import spread_design
from wsabi.quadrature.embeddings import kernel_mean
from wsabi.result import ModelBelief, Result

__all__ = ["bbq", "expected_reduction"]

NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
# A point with less of its prior variance left is a datum or a candidate already.
MIN_VARIANCE = 1e-6


def bbq(
    log_likelihood: Callable[..., Any],
    prior: Any,
    *,
    budget: int,
    rng: Seed = None,
    vectorized: bool = False,
    n_candidates: int | None = None,
    n_lookahead: int = 64,
    max_seconds: float | None = None,
    callback: Callback | None = None,
) -> Result:
    """GP on ℓ, corrected by a GP on t = log(1 + ℓ/γ); the next point minimises the expected variance of Z.

    E[Z] = ∫ (m_ℓ + m_Δ) π,  V[Z] = ∬ g C_t g' ππ' + (∂E/∂θ)ᵀ cov(θ) (∂E/∂θ),  g = m_ℓ + m_Δ + γ,
    Δ = γ(exp m_t − 1) − m_ℓ, θ the log length-scales of the GP on t (see :mod:`wsabi.baselines.doubly_bayesian_model`).

    Parameters
    ----------
    log_likelihood, prior, rng, vectorized, max_seconds, callback : as for :func:`wsabi.integrate`.
    budget : number of evaluations N; choosing one costs O((N + M)²(N + M + A)), which is why BBQ is slow.
    n_candidates : M, the points at which Δ is computed; None is 20(D + 1).
    n_lookahead : A, the points at which the expected variance is computed for each sample.

    Notes
    -----
    Departures from the published method, each for want of a stated choice or for a closed form:

    - ℓ is expanded about the mean of the GP on t. Expanded about m_ℓ, with Δ = m_t − log(1 + m_ℓ/γ) and weight m_ℓ + γ,
      it is the same to first order in Δ, but Δ < −1, common among few data, then makes the likelihood negative.
    - γ is a hundredth of the largest likelihood seen, in the transform that keeps t finite where ℓ = 0.
    - Δ has the kernel of the GP on ℓ; its candidates are drawn half from π and half around the data, and thinned by a
      weighted pivoted Cholesky factorisation.
    - The expected variance is V minus the variance of E[Z] over what ℓ(x) may turn out to be: five Gauss-Hermite nodes
      of t(x), whose variance includes that from θ. It is computed at A points and not optimised further.
    - Length-scales are refitted as the data grow by a fifth; the same prior as elsewhere makes them MAP values.
    - A uniform or polynomial prior is carried to a Gaussian by the probability integral transform.

    Examples
    --------
    >>> import wsabi
    >>> from wsabi.baselines import bbq
    >>> result = bbq(lambda x: -0.5 * x @ x, wsabi.Gaussian([0.0]), budget=15, rng=0)
    >>> abs(result.log_z + 0.3466) < 1e-2
    True
    """
    run = Run(
        log_likelihood, prior, method="bbq", budget=budget, vectorized=vectorized, max_seconds=max_seconds,
        callback=callback, gaussian=True,
    )  # fmt: skip
    measure = run.chart.measure
    if isinstance(measure, Bounded):
        raise TypeError("the base measure of BBQ is a Gaussian or a mixture.")
    generator = as_generator(rng)
    size = 20 * (measure.dim + 1) if n_candidates is None else whole_number("n_candidates", n_candidates)
    model = DoublyBayesianModel(measure, size, generator)
    return run.complete(_ActiveQuadrature(run, model, whole_number("n_lookahead", n_lookahead), generator))


class _ActiveQuadrature:
    def __init__(self, run: Run, model: DoublyBayesianModel, n_lookahead: int, rng: np.random.Generator) -> None:
        self._run, self._model, self._n_lookahead, self._rng = run, model, n_lookahead, rng
        self._design = spread_design(model.measure, 2 * (model.measure.dim + 1), rng)

    def advance(self) -> bool:
        x = self._next()
        self._model.observe(x, self._run.evaluate(x))
        return True

    def _next(self) -> Array:
        """The next point, (1, D)."""
        n = self._run.n_evals
        if n < len(self._design):
            return self._design[n : n + 1]
        if self._model.gp_l is None:
            return self._model.measure.sample(1, self._rng)
        Q = self._model.draw_candidates(self._n_lookahead)
        best = int(np.argmax(expected_reduction(self._model, Q)))
        return Q[best : best + 1]

    def belief(self) -> ModelBelief | None:
        return self._model.belief()

    def summary(self) -> Summary | None:
        run, model = self._run, self._model
        known = len(model.X)
        if known < run.n_evals:
            model.observe(run.base_points[known:].copy(), run.log_f[known:].copy())
        belief = model.belief()
        if belief is None:
            return None
        gp, _ = model.models()
        # ℓπ/Z of the GP on ℓ alone, with that GP's own integral: values at candidates are not data.
        own = float(kernel_mean(gp.unit_kernel, model.measure, gp.X) @ gp.weights)
        posterior = ClosedForm.from_gp(
            gp, alpha=0.0, method="bq", measure=model.measure, chart=run.chart, log_l_max=model.log_l_max,
            log_z=safe_log(own) + model.log_l_max,
        )  # fmt: skip
        return Summary(belief, posterior, tuple(self._warnings(belief)), tuple(model.fits), model.max_jitter)

    def _warnings(self, belief: ModelBelief) -> list[str]:
        model = self._model
        found = []
        near = int(np.sum(model.log_l > model.log_l_max - 5.0))
        if not math.isfinite(belief.log_mean):
            found.append("the model's mean of Z is not positive: log Z has no estimate.")
        if near <= self._run.chart.dim:
            found.append(
                f"only {near} of {self._run.n_evals} points lie within 5 nats of the highest likelihood: neither the "
                "estimate nor its standard deviation can be trusted."
            )
        if belief.variance_clipped:
            found.append("the variance of Z was lost in round-off and replaced by its round-off.")
        if model.max_jitter > JITTER:
            found.append(f"the kernel matrix needed a relative jitter of {model.max_jitter:.0e}.")
        return found


def expected_reduction(model: DoublyBayesianModel, Q: Array) -> Array:
    """V[Z | D] − ⟨V[Z | D, ℓ(x_a)]⟩, (A,), at Q (A, D): the variance of E[Z | D, ℓ(x_a)] over ℓ(x_a).

    Data, candidates and length-scales stay. The GP on t gains the datum (x_a, t_a), which moves v at the candidates;
    the GP on ℓ over Y gains (x_a, ℓ_a): E = ruleᵀv + (ℓ_a − k_aᵀK_Y⁻¹v)(w_a − k_aᵀK_Y⁻¹w)/C_Y(x_a).
    """
    gp_l, gp_t = model.models()
    known = model.correction()
    k = gp_l.unit_kernel(known.points, Q)  # (N + M, A)
    half = solve_lower(known.factor, k)
    left = 1.0 - np.square(half).sum(axis=0)  # C_Y(x_a)  (A,)
    left_t, cov_t = _covariance(gp_t, Q, known.candidates)
    usable = (left > MIN_VARIANCE) & (left_t > MIN_VARIANCE)
    left, left_t = np.where(usable, left, 1.0), np.where(usable, left_t, 1.0)
    mean, t = _nodes(model, gp_t, Q, left_t)
    moved = known.m_t + ((t - mean) / left_t[:, None])[..., None] * cov_t[:, None, :]  # m_t at candidates  (A, G, M)
    v = inverse_log_transform(moved)
    n = known.n
    solved = solve_upper(known.factor, half)  # K_Y⁻¹k_a  (N + M, A)
    predicted = (known.values[:n] @ solved[:n])[:, None] + np.einsum("agm,ma->ag", v, solved[n:])
    gained = (kernel_mean(gp_l.unit_kernel, model.measure, Q) - known.kernel_means @ solved) / left
    means = v @ known.rule[n:] + (inverse_log_transform(t) - predicted) * gained[:, None]  # up to a constant
    weights = NODE_WEIGHTS / NODE_WEIGHTS.sum()
    return np.where(usable, np.square(means - (means @ weights)[:, None]) @ weights, 0.0)


def _covariance(gp: GP, Q: Array, candidates: Array) -> tuple[Array, Array]:
    """C(x_a, x_a) (A,) and C(x_a, x_c) (A, M), in units of λ²."""
    L = gp.lower()
    V = solve_lower(L, gp.unit_kernel(gp.X, Q))
    left = 1.0 - np.square(V).sum(axis=0)
    if not len(candidates):
        return left, np.empty((len(Q), 0))
    V_c = solve_lower(L, gp.unit_kernel(gp.X, candidates))
    return left, gp.unit_kernel(Q, candidates) - V.T @ V_c


def _nodes(model: DoublyBayesianModel, gp: GP, Q: Array, left: Array) -> tuple[Array, Array]:
    """Mean (A, 1) and Gauss-Hermite nodes (A, G) of t(x_a) ~ N(m_t, C_t + ∂m_tᵀ cov(θ) ∂m_t), nodes non-negative."""
    slopes = model.slopes(Q)  # (D, A)
    variance = gp.scale**2 * left + np.einsum("da,de,ea->a", slopes, model.theta_cov, slopes)
    mean = gp.mean(Q)[:, None]
    return mean, np.maximum(mean + np.sqrt(variance)[:, None] * NODES, 0.0)
