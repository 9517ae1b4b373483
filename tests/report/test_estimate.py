"""From a model to what the user is told: the right estimate, the right kind of posterior, and every warning."""

from __future__ import annotations

import copy
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wsabi
from wsabi.adaptive.engine import AdaptiveModel
from wsabi.adaptive.search.known_regions import KnownRegions
from wsabi.adaptive.searches import Lookout
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.gp.fit import LOG_BOUND, FitRecord
from wsabi.posterior.closed_form import Posterior
from wsabi.posterior.weighted import WeightedSamples
from wsabi.priors.chart import chart
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.estimate import Estimate, concluded, estimate_of, posterior_of
from wsabi.report.warnings import Remarks, remarks_on
from wsabi.result import Certificate, ErrorBudget, ModelBelief, SearchRecord

MEASURE = wsabi.Gaussian([0.0, 0.0])
TRUTH = -math.log(2.0)  # exp(−½xᵀx) under N(0, I₂)


def log_l(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square(X).sum(axis=1))


def grown(model: Any, n: int, function: Any = log_l) -> Any:
    for _ in range(n):
        X = model.propose(1, np.empty((0, 2)))
        model.observe(X, function(X))
    return model


def adaptive(n: int, function: Any = log_l, budget: int = 80, **choices: Any) -> AdaptiveModel:
    model = AdaptiveModel(MEASURE, wsabi.Settings(**choices), np.random.default_rng(0), budget)
    grown(model, n, function)
    return model


def plain(n: int, **choices: Any) -> SequentialModel:
    settings = wsabi.Settings(measure="prior", **choices)
    model = SequentialModel(MEASURE, settings, np.random.default_rng(0))
    grown(model, n)
    return model


@pytest.fixture(scope="module")
def finished() -> AdaptiveModel:
    """An adaptive model that is integrating; tests work on copies."""
    return adaptive(80)


# -- conclude and estimate --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: adaptive(0), lambda: adaptive(9, lambda X: np.full(len(X), -np.inf)), lambda: plain(0)]
)
def test_without_a_finite_value_there_is_no_estimate(make: Any) -> None:
    assert concluded(make()) is None


def test_a_model_with_an_estimate_learns_a_last_time_in_a_copy(finished: AdaptiveModel) -> None:
    """From all training data; the model itself goes on as it was. Plain WSABI has nothing more to learn."""
    assert finished.regions is not None
    before = [(part.explorer, part.explorer.surrogate) for part in finished.regions.parts]
    last = concluded(finished)
    assert isinstance(last, AdaptiveModel)
    assert last.regions is not None
    assert last.data is finished.data
    assert [(part.explorer, part.explorer.surrogate) for part in finished.regions.parts] == before
    n_training = len(finished.lookout.training_data()[0])
    for part, (_, known) in zip(last.regions.parts, before, strict=True):
        learnt = part.explorer.surrogate
        assert learnt is not None
        assert known is not None
        assert len(learnt.Y) == n_training
        assert np.max(np.abs(learnt.theta.vector - known.theta.vector)) > 1e-3
    prior = plain(12)
    assert concluded(prior) is prior


def test_a_model_still_looking_is_concluded_in_a_copy() -> None:
    model = adaptive(14)
    assert model.regions is None
    state = copy.deepcopy(model.rng.bit_generator.state)
    done = concluded(model)
    assert isinstance(done, AdaptiveModel)
    assert done is not model
    assert done.regions is not None
    assert model.regions is None
    assert model.rng.bit_generator.state == state
    assert_array_equal(done.X, model.X)
    assert done.found.searches[-1].outcome == "unfinished"
    assert model.found.searches == []


def test_too_few_data_give_way_to_plain_wsabi() -> None:
    model = adaptive(3)
    done = concluded(model)
    assert isinstance(done, SequentialModel)
    assert_array_equal(done.X, model.X)
    assert math.isfinite(estimate_of(done).log_z)  # type: ignore[union-attr]


def test_estimates_of_both_kinds_are_right(finished: AdaptiveModel) -> None:
    by_prior, by_engine = estimate_of(plain(40)), estimate_of(finished, final=True)
    assert by_prior is not None
    assert by_engine is not None
    assert abs(by_prior.log_z - TRUTH) < 5e-3
    assert abs(by_engine.log_z - TRUTH) < 5e-3
    assert by_prior.certificate is None
    assert by_prior.log_z == by_prior.model.log_mean
    assert by_engine.certificate is not None
    assert by_engine.log_z == by_engine.certificate.log_z
    assert abs(by_engine.model.log_mean - TRUTH) < 0.02  # WSABI's own, in coordinates of the posterior


def test_mass_that_looking_may_have_missed_widens_the_error(
    finished: AdaptiveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """√(s² + log²(1 + u)) for the share u that the looks leave open, and the certificate's own s where it is none."""
    monkeypatch.setattr(KnownRegions, "unseen_share", 0.0)
    sure = estimate_of(finished)
    assert sure is not None
    assert sure.certificate is not None
    assert sure.log_z_std == pytest.approx(sure.certificate.log_z_std, rel=1e-9)
    assert sure.error.unseen == 0.0
    monkeypatch.setattr(KnownRegions, "unseen_share", 0.3)
    unsure = estimate_of(finished)
    assert unsure is not None
    assert unsure.log_z_std == pytest.approx(math.hypot(sure.log_z_std, math.log(1.3)), rel=1e-12)
    assert unsure.log_z == sure.log_z


def test_a_search_that_is_still_hot_widens_the_error_by_its_heat(calm: AdaptiveModel) -> None:
    """tD nats at temperature t: what it has found may be that far below the mass."""
    sure = estimate_of(calm)
    assert sure is not None
    calm.found.sites[0].explorer.temperature = 7.0
    hot = estimate_of(calm)
    assert hot is not None
    assert hot.log_z_std == pytest.approx(math.hypot(sure.log_z_std, 7.0 * 2), rel=1e-12)
    assert hot.log_z == sure.log_z
    assert len(warned(calm)) == 1
    assert "while a search was still climbing" in warned(calm)[0]
    calm.found.searches[:] = calm.found.searches[:1]  # which is why there was no other look
    assert len(warned(calm)) == 1
    assert "while a search was still climbing" in warned(calm)[0]


def test_a_budget_that_ends_before_the_mass_is_reached_says_so() -> None:
    """A needle of 1e-4 prior sds, with evaluations for little more than the design: the truth is in the error bar."""
    truth = 2.0 * (math.log(1e-4) - 0.5 * 0.6**2)  # exp(−½|x − c|²/s²) under N(0, I): s² exp(−½|c|²) for small s

    def needle(X: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5e8 * np.square(X - 0.6).sum(axis=1))

    result = wsabi.integrate(needle, MEASURE, budget=12, rng=0, vectorized=True)
    assert result.log_z < truth - 100.0  # far from it
    assert result.log_z_std > 0.5 * (truth - result.log_z)
    assert any("while a search was still climbing" in text for text in result.warnings)


def test_a_looking_model_has_no_estimate_yet() -> None:
    assert estimate_of(adaptive(10)) is None


def test_estimates_repeat_and_draw_from_no_stream_of_the_run(finished: AdaptiveModel) -> None:
    state = copy.deepcopy(finished.rng.bit_generator.state)
    assert repr(estimate_of(finished)) == repr(estimate_of(finished))
    posterior_of(finished, chart(MEASURE), estimate_of(finished))  # type: ignore[arg-type]
    assert finished.rng.bit_generator.state == state


def test_posteriors(finished: AdaptiveModel) -> None:
    """The posterior is N(0, ½I): closed form under the prior, weighted draws under the engine."""
    prior = plain(40)
    closed = posterior_of(prior, chart(MEASURE), estimate_of(prior))  # type: ignore[arg-type]
    drawn = posterior_of(finished, chart(MEASURE), estimate_of(finished))  # type: ignore[arg-type]
    assert isinstance(closed, Posterior)
    assert isinstance(drawn, WeightedSamples)
    assert np.abs(closed.cov - 0.5 * np.eye(2)).max() < 0.02
    assert drawn.effective_sample_size > 500.0
    assert np.abs(drawn.cov - 0.5 * np.eye(2)).max() < 0.1  # 4 000 draws: 0.02, five times
    assert np.abs(drawn.mean).max() < 0.1


NAMES = ("slope", "offset")

# -- warnings ---------------------------------------------------------------------------------------------------------

CERTIFICATE = Certificate(
    log_z=-0.7, log_z_std=0.01, model_log_z=-0.7, model_log_z_std=0.01, check_log_z=-0.7, check_log_z_std=0.01,
    difference=0.5, n_points=20, effective_sample_size=15.0, pareto_k=0.2, wsabi_share=0.5, uncertainty=0.01,
    model_log_var=-10.0,
)  # fmt: skip


EVEN = WeightedSamples(np.zeros((1000, 2)), np.full(1000, 1e-3), NAMES)  # a posterior with draws enough


def remarks(model: Any, estimate: Estimate | None = None, noise: float = 0.0, **certificate: Any) -> Remarks:
    if estimate is None:
        estimate = Estimate(-0.7, ErrorBudget(0.01), ModelBelief(-0.7, -10.0), replace(CERTIFICATE, **certificate))
    return remarks_on(model, estimate, EVEN, model.log_l, noise, NAMES)


def warned(model: Any, estimate: Estimate | None = None, noise: float = 0.0, **certificate: Any) -> list[str]:
    return list(remarks(model, estimate, noise, **certificate).warnings)


def noted(model: Any) -> list[str]:
    return list(remarks(model).notes)


def infeasible(model: AdaptiveModel, n: int, of: int) -> None:
    """Let n of so many draws of the prior have met zero likelihood."""
    model.data.n_starts = of
    model.data._zero_starts.clear()
    model.data._zero_starts[-math.inf] = n


@pytest.fixture
def calm(finished: AdaptiveModel) -> AdaptiveModel:
    """A copy on which nothing is to be warned of."""
    model = copy.deepcopy(finished)
    model.found.searches = [
        SearchRecord(30, -0.7, "new region"),
        SearchRecord(10, -0.7, "known region"),
        SearchRecord(10, -0.7, "known region"),
    ]
    model.found.gains = [1.0, 0.0, 0.0]
    for site in model.found.sites:
        site.hits = 3
    infeasible(model, 0, model.data.n_starts)
    return model


def test_no_warning_when_all_is_well(calm: AdaptiveModel) -> None:
    assert remarks(calm) == Remarks()


@pytest.mark.parametrize(
    ("certificate", "text"),
    [
        ({"difference": -4.2}, r"Models and check points differ by 4\.2 standard deviations"),
        ({"pareto_k": 0.93}, r"A few check points dominate \(Pareto k = 0\.93, above 0\.7\)"),
        ({"model_log_z_std": 0.8}, "The internal models do not know log Z to half a nat"),
        ({"effective_sample_size": 1.4}, r"The 20 check points count as 1\.4 only"),
        ({"n_points": 0}, "No independent check points were evaluated"),
        ({"n_points": 6}, "Only 6 independent check points were evaluated"),
        ({"misplaced": 0.4}, "about 40% of the posterior's probability is in the wrong place"),
    ],
)
def test_warnings_of_the_certificate(calm: AdaptiveModel, certificate: dict[str, Any], text: str) -> None:
    found = warned(calm, **certificate)
    assert len(found) == 1
    assert re.search(text, found[0])


def test_a_pareto_k_that_is_not_known_is_no_warning(calm: AdaptiveModel) -> None:
    assert warned(calm, pareto_k=math.nan) == []


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        (["new region", "unfinished"], "The last search for modes was given up before it had ended"),
        (
            ["new region", "known region", "new region"],
            "The last of 3 searches still found a new mode",
        ),
    ],
)
def test_warnings_of_the_looks(calm: AdaptiveModel, outcomes: list[Any], text: str) -> None:
    calm.found.searches = [SearchRecord(10, -0.7, outcome) for outcome in outcomes]
    calm.found.gains = [None if outcome == "unfinished" else 0.0 for outcome in outcomes]
    found = warned(calm)
    assert len(found) == 1
    assert text in found[0]


def test_one_look_alone_is_a_warning(calm: AdaptiveModel) -> None:
    calm.found.searches[:] = calm.found.searches[:1]
    assert len(warned(calm)) == 1
    assert "Only one search for modes was possible" in warned(calm)[0]


def test_mirror_images_not_looked_at_are_a_warning(calm: AdaptiveModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lookout, "echoing_shares", property(lambda _: [0.004, 0.005]))
    assert warned(calm) == []  # less than a hundredth
    monkeypatch.setattr(Lookout, "echoing_shares", property(lambda _: [0.5, 0.5]))
    assert len(warned(calm)) == 1
    assert warned(calm)[0].startswith("2 images of a known mode")
    estimate = estimate_of(calm)
    assert estimate is not None
    assert estimate.log_z_std > math.log(2.0)  # which holds as much mass again


def test_images_too_many_to_follow_are_a_warning(calm: AdaptiveModel) -> None:
    calm.found.beyond.append(Symmetry.of(calm.measure.dim, reversed_axes=range(calm.measure.dim)))
    assert len(warned(calm)) == 1
    assert "1 times the evidence found lies in further images" in warned(calm)[0]
    estimate = estimate_of(calm)
    assert estimate is not None
    assert estimate.log_z_std > math.log(2.0)


def test_looks_that_end_in_different_places_are_a_warning(calm: AdaptiveModel) -> None:
    for site in calm.found.sites:
        site.hits = 1
    calm.found.n_negligible = 3  # four kinds met once and none twice: 4·3/2, held to the three looks, of a quarter each
    found = warned(calm)
    assert len(found) == 1
    assert "keep ending in different places: modes that were not found may hold 0.75 times the evidence" in found[0]


@pytest.mark.parametrize(("shift", "named"), [(0.0, []), (2.4, []), (2.8, ["slope"]), (-2.8, ["slope"])])
def test_mass_at_the_edge_of_the_prior(calm: AdaptiveModel, shift: float, named: list[str]) -> None:
    """The outermost hundredth of N(0, 1) begins at 2.576."""
    assert calm.regions is not None
    for explorer in calm.regions.explorers:
        explorer.frame = replace(explorer.frame, mean=np.array([shift, 0.0]))
    assert warned(calm) == []
    assert [next(name for name in NAMES if f"along {name}" in text) for text in noted(calm)] == named


def test_infeasible_mass_is_reported_as_a_share(calm: AdaptiveModel) -> None:
    infeasible(calm, 2, of=8)
    assert noted(calm) == ["The likelihood is zero on about 25% of the prior (2 of 8 draws)."]
    assert warned(calm) == []


def test_where_most_is_infeasible_the_error_bar_allows_for_parts_not_met(calm: AdaptiveModel) -> None:
    before = estimate_of(calm)
    infeasible(calm, 9, of=10)
    after = estimate_of(calm)
    assert before is not None
    assert after is not None
    assert_allclose(after.log_z_std, math.hypot(before.log_z_std, math.log(1.5)))
    assert "Only 1 draws of the prior met a positive likelihood" in warned(calm)[0]


def test_infeasible_starts_are_counted() -> None:
    model = adaptive(30, lambda X: np.where(X[:, 0] > 0.5, log_l(X), -np.inf))
    assert 0 < model.data.n_infeasible < model.data.n_starts <= 30


def test_warnings_common_to_all_models(calm: AdaptiveModel) -> None:
    estimate = Estimate(math.nan, ErrorBudget(0.01), ModelBelief(-0.7, -10.0, variance_clipped=True), CERTIFICATE)
    found = remarks(calm, estimate, noise=0.25)
    assert any("mean of Z is not positive" in text for text in found.warnings)
    assert any("gave two values 0.25 nats apart" in text for text in found.warnings)
    assert len(found.warnings) == 2
    assert ["below round-off" in text for text in found.notes] == [True]


def test_few_points_near_the_best() -> None:
    model = plain(12)
    estimate = estimate_of(model)
    assert estimate is not None
    log_l_ = np.array([0.0, *np.full(11, -50.0)])
    found = remarks_on(model, estimate, EVEN, log_l_, 0.0, NAMES).warnings
    assert len(found) == 1
    assert found[0].startswith("Only 1 of 12 evaluations lie within 5 nats of the highest log-likelihood")


def test_length_scales_and_jitter_at_their_ends() -> None:
    model = plain(30)
    model.fits.append(FitRecord(30, (math.exp(-LOG_BOUND), 1.0), 1.0, 0.0, 5, True, True))
    model.max_jitter = 1e-6
    estimate = estimate_of(model)
    assert estimate is not None
    found = remarks_on(model, estimate, EVEN, model.log_l, 0.0, NAMES)
    assert any("lower end of its range" in text for text in found.warnings)
    assert any("relative jitter of 1e-06" in text for text in found.notes)


def test_plain_wsabi_in_place_of_the_engine_says_so() -> None:
    done = concluded(adaptive(3))
    assert isinstance(done, SequentialModel)
    estimate = estimate_of(done)
    assert estimate is not None
    found = remarks_on(done, estimate, EVEN, done.log_l, 0.0, NAMES).warnings
    assert any("Only 3 evaluations have a likelihood above zero, too few to search for modes" in text for text in found)
