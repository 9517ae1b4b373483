"""The growing model end to end: every choice on integrals with a known answer, pending points, schedules, extremes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import reference
from wsabi._core.types import Array
from wsabi.errors import NumericalError
from wsabi.gp.exact import condition
from wsabi.gp.kernel import SquaredExponential
from wsabi.priors import Gaussian, GaussianMixture, Measure, Polynomial, Uniform
from wsabi.quadrature import wsabi as sequential
from wsabi.quadrature.integral import moments
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.settings import Acquisition, Method, Search, Settings

METHODS: tuple[Method, ...] = ("wsabi-l", "wsabi-m", "bq")
KINDS = ("gaussian", "mixture", "box", "polynomial")
LogL = Callable[[Array], Array]


def bump(measure: Measure, width: float = 1.0) -> tuple[LogL, float]:
    """log ℓ of a Gaussian bump off the mean, ``width`` sds of the measure wide, and its log Z in closed form."""
    sd = np.sqrt(np.diag(measure.cov))
    centre, spread = measure.mean + 0.3 * sd, width * sd

    def log_l(X: Array) -> Array:
        return np.asarray(-0.5 * np.square((X - centre) / spread).sum(axis=1))

    def under(gaussian: Gaussian) -> float:
        total = stats.multivariate_normal(gaussian.mean, gaussian.cov + np.diag(spread**2))
        return float(np.exp(total.logpdf(centre)) * np.prod(spread) * (2 * math.pi) ** (measure.dim / 2))

    if isinstance(measure, Uniform):
        inside = stats.norm.cdf((measure.high - centre) / spread) - stats.norm.cdf((measure.low - centre) / spread)
        return log_l, float(np.log(inside * spread * math.sqrt(2 * math.pi) / (measure.high - measure.low)).sum())
    if isinstance(measure, Polynomial):
        nodes, weights = reference.quadrature(measure, 40)
        return log_l, math.log(weights @ np.exp(log_l(nodes)))
    if isinstance(measure, GaussianMixture):
        return log_l, math.log(sum(w * under(c) for w, c in zip(measure.weights, measure.components, strict=True)))
    return log_l, math.log(under(measure))


def run(model: SequentialModel, log_l: LogL, n: int, batch: int = 1) -> SequentialModel:
    """Sample until the model has n data."""
    while len(model.X) < n:
        X = model.propose(batch, np.empty((0, model.measure.dim)))
        model.observe(X, log_l(X))
    return model


def estimate(model: SequentialModel) -> tuple[float, float]:
    """log E[Z] and the standard deviation of log Z."""
    belief = model.belief()
    assert belief is not None
    return belief.log_mean, belief.log_z_std


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


ALL_CHOICES = list(itertools.product(METHODS, ("uncertainty", "expected-entropy"), ("pool", "cma-es"), KINDS))


@pytest.mark.parametrize(("method", "acquisition", "search", "kind"), ALL_CHOICES)
def test_every_choice_runs_and_gets_the_integral_right(
    method: Method, acquisition: Acquisition, search: Search, kind: str
) -> None:
    """To one per cent: the first design alone is off by ten, and a wrong formula by any amount."""
    dim = 1 if search == "cma-es" else 2
    measure = reference.make_measure(kind, dim)
    log_l, truth = bump(measure)
    chosen = Settings(method=method, acquisition=acquisition, search=search, measure="prior", initial=3 * dim)
    model = run(SequentialModel(measure, chosen, np.random.default_rng(0)), log_l, 9 if dim == 1 else 30)
    log_z, log_z_std = estimate(model)
    assert abs(log_z - truth) < 1e-2
    assert log_z_std < 5e-2
    assert np.all(np.isfinite(measure.log_pdf(model.X)))
    assert len(np.unique(model.X, axis=0)) == len(model.X)


@pytest.mark.parametrize("method", METHODS)
def test_the_settings_of_the_paper(method: Method) -> None:
    """α = 0.8 min ℓ is a bias that only data where ℓ is small remove: three per cent is what it leaves here."""
    measure = reference.make_measure("gaussian", 2)
    log_l, truth = bump(measure)
    model = run(SequentialModel(measure, Settings.paper(method), np.random.default_rng(0)), log_l, 22)
    assert abs(estimate(model)[0] - truth) < 3e-2
    assert [record.n_evals for record in model.fits] == list(range(1, 23))
    smallest = math.exp(model.log_l.min() - model.log_l_max)
    assert model.alpha == (0.0 if method == "bq" else 0.8 * smallest)


def test_the_look_ahead_is_searched_in_units_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """CMA-ES ends where values differ by 1e-3; a change of V[Z] is often below 1e-6, and would end it at once."""
    seen = []

    def search(objective: LogL, measure: Measure, start: Array, rng: np.random.Generator) -> Array:
        seen.append(float(objective(start[None])[0]))
        return start

    monkeypatch.setattr("wsabi.quadrature.wsabi.cma_es", search)
    measure = reference.make_measure("gaussian", 1)
    settings = Settings(acquisition="expected-entropy", search="cma-es")
    run(SequentialModel(measure, settings, np.random.default_rng(0)), bump(measure)[0], 8)
    assert len(seen) == 4
    assert_allclose(np.abs(seen), 1.0, rtol=1e-2)  # of order one; its terms cancel, more with every datum


@pytest.mark.parametrize("search", ["pool", "cma-es"])
@pytest.mark.parametrize("acquisition", ["uncertainty", "expected-entropy"])
def test_the_seed_decides_the_run(acquisition: Acquisition, search: Search) -> None:
    measure = reference.make_measure("gaussian", 2)
    chosen = Settings(acquisition=acquisition, search=search)
    first, second, other = (
        run(SequentialModel(measure, chosen, np.random.default_rng(seed)), bump(measure)[0], 10) for seed in (0, 0, 1)
    )
    assert_array_equal(first.X, second.X)
    assert np.any(first.X != other.X)


# -- schedules --------------------------------------------------------------------------------------------------------


def test_refits_follow_the_schedule() -> None:
    measure = reference.make_measure("gaussian", 2)
    log_l, _ = bump(measure)
    every = run(SequentialModel(measure, Settings(refit="every"), np.random.default_rng(0)), log_l, 15)
    assert [record.n_evals for record in every.fits] == list(range(1, 16))
    geometric = run(SequentialModel(measure, Settings(), np.random.default_rng(0)), log_l, 60)
    sizes = [record.n_evals for record in geometric.fits]
    assert sizes[0] == 4  # D + 2
    assert all(later == math.ceil(1.2 * earlier) for earlier, later in itertools.pairwise(sizes))
    last = geometric.fits[-1]
    assert geometric.gp is not None
    assert_allclose(last.lengthscales, geometric.gp.lengthscales, rtol=1e-15)
    assert last.scale > 0.0
    assert math.isfinite(last.log_evidence)


def test_the_first_design_is_not_fitted_until_it_has_data_enough() -> None:
    """Up to D + 1 points of it the model is that of the length-scales' prior at its centre, and has a belief."""
    measure = reference.make_measure("gaussian", 2)
    log_l, _ = bump(measure)
    model = SequentialModel(measure, Settings(), np.random.default_rng(0))
    for n in (1, 2, 3):
        run(model, log_l, n)
        assert model.fits == []
        assert model.gp is not None
        assert_allclose(model.gp.lengthscales, math.sqrt(2.0) * np.sqrt(np.diag(measure.cov)), rtol=1e-14)
        assert_array_equal(model.gp.X, model.X)
        assert math.isfinite(estimate(model)[0])


@pytest.mark.parametrize(("initial", "first"), [(1, 1), (2, 2), (3, 3), (5, 4)])
def test_a_design_that_is_over_is_fitted_however_short(initial: int, first: int) -> None:
    measure = reference.make_measure("gaussian", 2)
    model = SequentialModel(measure, Settings(measure="prior", initial=initial), np.random.default_rng(0))
    run(model, bump(measure)[0], 6)
    assert model.fits[0].n_evals == first


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_a_model_rebuilt_after_an_interrupt_is_the_same(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the first design, at its first fit and after: what follows is that of the unbroken run, bit for bit."""
    measure = reference.make_measure("gaussian", 2)
    log_l, _ = bump(measure)
    unbroken, broken = (SequentialModel(measure, Settings(), np.random.default_rng(0)) for _ in range(2))
    run(unbroken, log_l, 12)
    run(broken, log_l, n - 1)
    X = broken.propose(1, np.empty((0, 2)))
    with monkeypatch.context() as patch:
        patch.setattr(sequential, "condition", interrupt)
        patch.setattr(sequential, "fit_lengthscales", interrupt)
        with pytest.raises(KeyboardInterrupt):
            broken.observe(X, log_l(X))
    broken.recover()
    run(broken, log_l, 12)
    assert_array_equal(broken.X, unbroken.X)
    assert broken.fits == unbroken.fits
    assert broken.belief() == unbroken.belief()


def test_growth_between_fits_equals_conditioning_from_scratch() -> None:
    measure = reference.make_measure("gaussian", 2)
    model = run(SequentialModel(measure, Settings(), np.random.default_rng(0)), bump(measure)[0], 14)
    assert model.gp is not None
    assert model.fits[-1].n_evals == 12
    likelihood = np.exp(model.log_l - model.log_l.max())
    scratch = condition(model.X, np.sqrt(2.0 * likelihood), model.gp.lengthscales)
    mine, other = (moments(gp, measure, 0.0, "wsabi-l") for gp in (model.gp, scratch))
    assert_allclose(mine.mean, other.mean, rtol=1e-9)
    assert_allclose(mine.variance, other.variance, rtol=1e-5)  # a small difference of large terms
    assert_allclose(model.gp.scale, scratch.scale, rtol=1e-9)


def test_a_fixed_kernel_stays_fixed() -> None:
    measure = reference.make_measure("gaussian", 2)
    kernel = SquaredExponential(0.7, 1.6)
    log_l, truth = bump(measure)
    model = run(SequentialModel(measure, Settings(), np.random.default_rng(0), kernel), log_l, 25)
    assert model.fits == []
    assert model.gp is not None
    assert_array_equal(model.gp.lengthscales, [1.6, 1.6])
    assert model.gp.scale == 0.7
    assert abs(estimate(model)[0] - truth) < 1e-2


# -- pending points and batches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("acquisition", ["uncertainty", "expected-entropy"])
def test_a_batch_conditions_on_its_own_points_exactly(acquisition: Acquisition) -> None:
    measure = reference.make_measure("gaussian", 2)
    model = run(
        SequentialModel(measure, Settings(acquisition=acquisition), np.random.default_rng(0)), bump(measure)[0], 12
    )
    gp = model.gp
    assert gp is not None
    m_before = gp.mean(measure.sample(5, 1))
    pending = measure.mean + np.array([[0.2, 0.1], [1.5, -0.6]])
    chosen = model.propose(3, pending)
    # The last of the batch was chosen with all the others behind the data: C̃ knows them, m̃ does not.
    assert_array_equal(gp.pending, np.vstack([pending, chosen[:-1]]))
    Q = measure.sample(5, 1)
    m_tilde, c_tilde = gp.predict(Q)
    assert_allclose(m_tilde, m_before, rtol=1e-12)
    _, dense = reference.posterior(gp.kernel, np.vstack([model.X, pending, chosen[:-1]]), np.zeros(16), Q, gp.jitter)
    assert_allclose(c_tilde, np.diag(dense), rtol=1e-5, atol=1e-9 * gp.scale**2)
    everything = np.vstack([model.X, pending, chosen])
    assert len(np.unique(everything, axis=0)) == len(everything)


def test_pending_points_leave_no_trace() -> None:
    """Points asked for, given up, or told in another order: the model is that of the data alone."""
    measure = reference.make_measure("gaussian", 2)
    log_l, _ = bump(measure)
    plain, asked = (run(SequentialModel(measure, Settings(), np.random.default_rng(0)), log_l, 12) for _ in range(2))
    asked.propose(3, measure.sample(2, 5))
    asked.propose(1, measure.sample(1, 6))  # the first five were given up
    assert plain.belief() == asked.belief()
    X = measure.sample(1, 7)
    for model in (plain, asked):
        model.observe(X, log_l(X))
    assert plain.gp is not None
    assert asked.gp is not None
    Q = measure.sample(5, 1)
    for a, b in zip(plain.gp.predict(Q), asked.gp.predict(Q), strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-13)
    assert len(asked.gp.pending) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_batches_get_the_integral_right(kind: str) -> None:
    measure = reference.make_measure(kind, 2)
    log_l, truth = bump(measure)
    model = run(SequentialModel(measure, Settings(), np.random.default_rng(0)), log_l, 36, batch=5)
    assert abs(estimate(model)[0] - truth) < 1e-2


def test_nothing_already_known_is_proposed_again() -> None:
    """Nor by the first design: what an earlier run evaluated includes its mean and, with the same seed, all of it."""
    measure = reference.make_measure("gaussian", 2)
    log_l, _ = bump(measure)
    earlier = run(SequentialModel(measure, Settings(), np.random.default_rng(0)), log_l, 8)
    again = SequentialModel(measure, Settings(), np.random.default_rng(0))
    again.observe(earlier.X, earlier.log_l)
    proposed = again.propose(4, np.empty((0, 2)))
    everything = np.vstack([again.X, proposed])
    assert len(np.unique(everything, axis=0)) == len(everything)


def test_a_search_that_ends_on_a_datum_is_replaced_by_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = reference.make_measure("gaussian", 2)
    model = run(SequentialModel(measure, Settings(), np.random.default_rng(0)), bump(measure)[0], 8)
    monkeypatch.setattr(sequential, "polish", lambda *_: model.X[3].copy())
    proposed = model.propose(2, np.empty((0, 2)))
    assert len(np.unique(np.vstack([model.X, proposed]), axis=0)) == 10


# -- exact properties -------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.floats(-1e5, 1e5), st.sampled_from(METHODS), st.sampled_from(["auto", 0.8]))
def test_a_constant_added_to_log_l_is_added_to_log_z(shift: float, method: Method, alpha: float) -> None:
    measure = reference.make_measure("gaussian", 1)
    log_l, _ = bump(measure)
    X = measure.mean + reference.spread_points(8, 1, np.random.default_rng(0))
    beliefs = []
    for c in (0.0, shift):
        model = SequentialModel(measure, Settings(method=method, alpha=alpha), np.random.default_rng(0))
        model.observe(X, log_l(X) + c)
        beliefs.append(estimate(model))
    assert_allclose(beliefs[1][0] - shift, beliefs[0][0], atol=1e-8)  # 1e5·ε, through the condition of K
    assert_allclose(beliefs[1][1], beliefs[0][1], rtol=1e-3)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.sampled_from(METHODS))
def test_the_order_of_the_data_does_not_matter(seed: int, method: Method) -> None:
    measure = reference.make_measure("gaussian", 2)
    log_l, _ = bump(measure)
    X = measure.sample(12, 0)
    order = np.random.default_rng(seed).permutation(12)
    beliefs = []
    for o in (np.arange(12), order):
        model = SequentialModel(measure, Settings(method=method), np.random.default_rng(0))
        model.observe(X[o], log_l(X[o]))
        beliefs.append(estimate(model))
    assert_allclose(beliefs[1][0], beliefs[0][0], atol=1e-5)  # the fit stops at 1e-7 of the log evidence
    assert_allclose(beliefs[1][1], beliefs[0][1], rtol=1e-2)


@pytest.mark.parametrize("kind", KINDS)
def test_units_do_not_matter(kind: str) -> None:
    """Each axis in units a million times larger or smaller: the same points and the same log Z."""
    units = np.array([1e6, 1e-6])
    plain = reference.make_measure(kind, 2)
    scaled: Measure
    if isinstance(plain, Uniform):
        scaled = Uniform(plain.low * units, plain.high * units)
    elif isinstance(plain, Polynomial):
        scaled = Polynomial(plain.low * units, plain.high * units, plain.coefficients)
    elif isinstance(plain, Gaussian):
        scaled = Gaussian(plain.mean * units, plain.cov * np.outer(units, units))
    else:
        parts = plain.components
        covs = [c.cov * np.outer(units, units) for c in parts]
        scaled = GaussianMixture(plain.weights, [c.mean * units for c in parts], covs)
    log_l, truth = bump(plain)
    found = []
    for measure, unit in ((plain, np.ones(2)), (scaled, units)):
        model = SequentialModel(measure, Settings(), np.random.default_rng(0))
        X = plain.sample(20, 0) * unit
        model.observe(X, log_l(X / unit))
        found.append(estimate(model))
        run(model, lambda X, unit=unit: log_l(X / unit), 24)  # type: ignore[misc]
        assert abs(estimate(model)[0] - truth) < 5e-2
    assert_allclose(found[1][0], found[0][0], atol=1e-6)
    assert_allclose(found[1][1], found[0][1], rtol=1e-2)


# -- extremes ---------------------------------------------------------------------------------------------------------


def test_nothing_but_minus_infinity_is_no_belief_and_no_error() -> None:
    measure = reference.make_measure("gaussian", 2)
    model = run(SequentialModel(measure, Settings(), np.random.default_rng(0)), lambda X: np.full(len(X), -np.inf), 10)
    assert model.belief() is None
    assert model.gp is None
    assert len(np.unique(model.X, axis=0)) == 10
    log_l, _ = bump(measure)
    run(model, log_l, 20)  # and then there is mass after all
    assert math.isfinite(estimate(model)[0])


@pytest.mark.parametrize("method", METHODS)
def test_zero_likelihood_in_half_the_space(method: Method) -> None:
    """ℓ is one where x > 0 and zero elsewhere: Z = ½, which a smooth model resolves to the width of its step."""
    measure = Gaussian([0.0], 1.0)
    model = SequentialModel(measure, Settings(method=method), np.random.default_rng(0))
    run(model, lambda X: np.where(X[:, 0] > 0.0, 0.0, -np.inf), 30)
    assert abs(estimate(model)[0] - math.log(0.5)) < 0.1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [-1e5, 0.0, 1e5])
def test_one_datum_and_a_constant_likelihood(method: Method, value: float) -> None:
    measure = reference.make_measure("gaussian", 2)
    model = SequentialModel(measure, Settings(method=method, measure="prior", initial=1), np.random.default_rng(0))
    run(model, lambda X: np.full(len(X), value), 1)
    log_z, log_z_std = estimate(model)
    assert math.isfinite(log_z)
    assert log_z_std > 0.0
    run(model, lambda X: np.full(len(X), value), 20)
    assert_allclose(estimate(model)[0], value, rtol=1e-9, atol=1e-2)


def test_a_span_of_a_thousand_nats() -> None:
    measure = Gaussian([0.0, 0.0])
    log_l, truth = bump(measure, width=0.03)
    model = SequentialModel(measure, Settings(), np.random.default_rng(0))
    X = np.vstack(
        [measure.sample(10, 0), measure.mean + 0.3 + 0.03 * np.random.default_rng(1).standard_normal((15, 2))]
    )
    model.observe(X, log_l(X))
    assert model.log_l.min() < -1000.0
    run(model, log_l, 60)
    assert abs(estimate(model)[0] - truth) < 0.1


@pytest.mark.parametrize("dim", [1, 20])
def test_one_and_twenty_dimensions(dim: int) -> None:
    """In twenty dimensions a bump ten sds wide is near enough to flat for 60 points; a wrong power of D is not."""
    measure = Gaussian(np.linspace(-1.0, 1.0, dim), np.linspace(0.5, 2.0, dim))
    log_l, truth = bump(measure, width=10.0 if dim == 20 else 1.0)
    model = run(SequentialModel(measure, Settings(), np.random.default_rng(0)), log_l, 60)
    assert abs(estimate(model)[0] - truth) < 2e-2


@pytest.mark.parametrize("kind", ["gaussian", "box"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("length", [1e-3, 1e-2, 1e2, 1e3])
def test_extreme_lengthscales(length: float, method: Method, kind: str) -> None:
    """A bump as wide as the length-scale: right where it is wide, a number where it is a needle that nobody found.

    There ℓ̃ is white noise to the model: M takes Z for its prior mean ½λ² and is sure of it, L and BQ for nothing.
    """
    measure = reference.make_measure(kind, 2)
    kernel = SquaredExponential(1.0, length)
    log_l, truth = bump(measure, width=length)
    model = SequentialModel(measure, Settings(method=method), np.random.default_rng(0), kernel)
    log_z, log_z_std = estimate(run(model, log_l, 12))
    if length > 1.0:
        assert abs(log_z - truth) < 1e-3
    else:
        assert log_z_std > (0.0 if method == "wsabi-m" else 0.5)
        assert log_z < -0.6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("length", [1e2, 1e3])
def test_a_kernel_that_cannot_fit_gives_a_number_or_a_clear_error(length: float, method: Method) -> None:
    """A bump of one sd under a length-scale of hundreds: K is singular and the weights are huge, but nothing is NaN."""
    measure = reference.make_measure("gaussian", 2)
    model = SequentialModel(measure, Settings(method=method), np.random.default_rng(0), SquaredExponential(1.0, length))
    run(model, bump(measure)[0], 12)
    try:
        found = estimate(model)
    except NumericalError:
        return
    assert not np.any(np.isnan(found))


def test_near_duplicates_are_survived() -> None:
    """Points a billionth apart: K is singular to working precision, and the jitter is recorded."""
    measure = reference.make_measure("gaussian", 2)
    log_l, truth = bump(measure)
    X = measure.sample(20, 0)
    model = SequentialModel(measure, Settings(), np.random.default_rng(0))
    model.observe(X, log_l(X))
    model.observe(X + 1e-9, log_l(X + 1e-9))
    assert abs(estimate(model)[0] - truth) < 5e-2
    assert 1e-10 <= model.max_jitter <= 1e-4


@pytest.mark.parametrize(("method", "dim"), list(itertools.product(METHODS, (1, 2))))
def test_the_claim_stays_honest_at_round_off(method: Method, dim: int) -> None:
    """Eighty points of a smooth bump: V[Z] is lost in round-off, and the claim must cover the error all the same."""
    measure = Gaussian(np.zeros(dim))
    log_l, truth = bump(measure, width=0.5)
    model = run(SequentialModel(measure, Settings(method=method), np.random.default_rng(0)), log_l, 80)
    log_z, log_z_std = estimate(model)
    assert abs(log_z - truth) < 1e-3
    assert abs(log_z - truth) < 20.0 * log_z_std
