"""What is said about a result is seen, true, and short."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wsabi
from wsabi.adaptive import estimate as adaptive
from wsabi.adaptive.evaluations import Evaluations
from wsabi.adaptive.purposes import SearchPoint
from wsabi.adaptive.state import State
from wsabi.adaptive.symmetry.group import Symmetry
from wsabi.errors import NumericalError
from wsabi.gp.fit import LOG_BOUND, FitRecord
from wsabi.ledger import Observation
from wsabi.posterior.weighted import WeightedSamples
from wsabi.quadrature.wsabi import SequentialModel
from wsabi.report.estimate import Estimate, plain_estimate
from wsabi.report.warnings import Remarks, remarks_on_adaptive, remarks_on_plain
from wsabi.result import Certificate, ErrorBudget, ModelBelief, SearchRecord


def gaussian(x: np.ndarray) -> float:
    return float(-2.0 * x @ x)


PRIOR = wsabi.Gaussian([0.0, 0.0])


def test_integrate_and_run_emit_what_the_result_warns_of() -> None:
    """One Python warning for each entry, from the line of the caller; a result without warnings is silent."""
    with pytest.warns(wsabi.EvidenceWarning) as seen:
        result = wsabi.integrate(gaussian, PRIOR, budget=12, rng=0)
    assert [str(one.message) for one in seen] == list(result.warnings)
    assert result.warnings
    assert all(one.filename == __file__ for one in seen)
    with pytest.warns(wsabi.EvidenceWarning) as again:
        wsabi.Integrator(PRIOR, rng=0).run(gaussian, budget=12)
    assert all(one.filename == __file__ for one in again)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wsabi.integrate(gaussian, PRIOR, rng=0).warnings == ()


def test_another_prior_warns_in_python_too() -> None:
    result = wsabi.integrate(gaussian, wsabi.Uniform([-1.0, -1.0], [1.0, 1.0]), budget=60, rng=0)
    with pytest.warns(wsabi.EvidenceWarning, match="outside the support"):
        other = result.with_prior(wsabi.Uniform([-5.0, -5.0], [5.0, 5.0]))
    assert other.log_z_std == math.inf


def test_a_huge_error_bar_is_a_warning() -> None:
    with pytest.warns(wsabi.EvidenceWarning, match="The error bar is ±"):
        result = wsabi.integrate(lambda x: -0.5 * float(np.sum((x - 3.0) ** 2)) / 1e-8, PRIOR, budget=14, rng=0)
    assert result.log_z_std > 1.0


def test_information_is_a_note_and_no_warning() -> None:
    result = wsabi.integrate(lambda x: -math.inf if x[0] < -0.6 else gaussian(x), PRIOR, rng=0, budget=100, tol=0)
    assert any("likelihood is zero on about" in text for text in result.notes)
    assert not any("zero on about" in text for text in result.warnings)
    assert "note            The likelihood is zero on about" in str(result)


def test_a_failed_check_is_not_called_a_likelihood_of_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    integrator = wsabi.Integrator(PRIOR, rng=0)
    integrator.run(gaussian, budget=60, tol=0)

    def fail(*_: object, **__: object) -> None:
        raise NumericalError("the check has failed.")

    monkeypatch.setattr(adaptive, "certify", fail)
    with pytest.raises(NumericalError, match="the check has failed") as caught:
        integrator.result()
    assert not isinstance(caught.value, wsabi.NoMassFound)
    assert len(caught.value.state[0]) == 60  # nothing that was evaluated is lost


def test_told_points_alone_are_used() -> None:
    """They were "too few to look for the mass", however many they were."""
    integrator = wsabi.Integrator(PRIOR, rng=0)
    X = np.random.default_rng(0).standard_normal((150, 2))
    integrator.tell(X, [gaussian(x) for x in X])
    result = integrator.result()
    assert abs(result.log_z + math.log(5.0)) < 0.01
    assert not any("too few" in text for text in result.warnings)
    assert any("No independent check points" in text for text in result.warnings)


def test_a_true_value_far_below_is_not_said_to_be_zero_likelihood_on_part_of_the_prior() -> None:
    """Of a Cauchy prior: one value lies a thousand times as far below the best as the others, and is a true one."""
    X = np.random.default_rng(0).standard_normal((10, 2))
    values = [0.0, -1.0, -3.0, -2.0, -5.0, -8.0, -4.0, -184662.0, -184662.0, -184662.0]
    draws = [Observation(x, value, SearchPoint(0, is_draw=True)) for x, value in zip(X, values, strict=True)]
    data = Evaluations.none(PRIOR).observed(draws[:8])
    assert data.floors == (-184662.0,)
    assert data.n_infeasible == 0
    assert data.observed(draws[8:]).n_infeasible == 3  # three of one value are no accident
    prior = {"a": stats.cauchy(0, 1), "b": stats.norm(0, 1)}
    for seed in range(3):
        result = wsabi.integrate(lambda p: -0.5 * (p["a"] - 1.0) ** 2 - p["b"] ** 2, prior, budget=150, rng=seed)
        assert not any("zero on about" in text for text in result.notes + result.warnings)


def test_no_message_lists_more_than_a_few_values() -> None:
    """A likelihood with a hundred different floors."""
    result = wsabi.integrate(
        lambda x: gaussian(x) if x[0] > -0.3 else -1e30 * (1 + int(10 * abs(x[1]))), PRIOR, budget=150, rng=0
    )
    assert all(sum(character.isdigit() for character in text) < 60 for text in result.warnings + result.notes)


def test_the_table_of_a_running_integrator_makes_no_false_statement() -> None:
    integrator = wsabi.Integrator(PRIOR, rng=0)
    for _ in range(60):
        X = integrator.ask(1)
        integrator.tell(X, [gaussian(X[0])])
    text = str(integrator.result())
    assert "stopped because" not in text
    assert "state           not stopped" in text
    assert "nan" not in text
    assert "inf" not in text
    assert "method          adaptive" in text
    assert "posterior       16000 weighted points, which count as" in text


@pytest.mark.parametrize("seed", range(2))
def test_converged_means_that_the_error_bar_is_within_the_tolerance(seed: int) -> None:
    noise = np.random.default_rng(seed)
    result = wsabi.integrate(lambda x: gaussian(x) + 0.1 * noise.standard_normal(), PRIOR, tol=0.05, rng=seed)
    assert result.converged == (result.reason == "tolerance")
    assert not result.converged or result.log_z_std <= 0.05


def test_values_between_zero_and_one_are_taken_for_a_likelihood_without_its_logarithm() -> None:
    with pytest.warns(wsabi.EvidenceWarning, match="between 0 and 1"):
        wsabi.integrate(lambda x: math.exp(gaussian(x)), PRIOR, budget=40, rng=0)


def test_a_density_that_does_not_integrate_to_one_is_a_warning() -> None:
    forgotten = wsabi.LogDensity(lambda x: -0.5 * float(x @ x), wsabi.Gaussian([0.0, 0.0], 2.0))
    with pytest.warns(wsabi.EvidenceWarning, match="expected 1"):
        wsabi.integrate(gaussian, forgotten, budget=40, rng=0)


# -- the posterior ----------------------------------------------------------------------------------------------------


def test_under_noise_estimate_and_posterior_rest_on_the_check_points() -> None:
    """log ℓ + N(0, 0.5²), 400 evaluations: the surrogate follows the noise and knows nothing.

    Over two seeds, error bars below half a nat that hold the truth (z < 3.5: 0.1 % false alarms), and posterior
    standard deviations within 40 % (effective draws of at least 30: 1e-3).
    """
    sd, shift = 0.225, 0.3
    truth = 3.0 * math.log(sd / math.sqrt(1.0 + sd**2)) - 1.5 * shift**2 / (1.0 + sd**2) + 0.5 * 0.5**2
    for seed in range(2):
        noise = np.random.default_rng(100 + seed)
        result = wsabi.integrate(
            lambda x, noise=noise: float(-0.5 * np.sum((x - shift) ** 2) / sd**2 + 0.5 * noise.standard_normal()),
            wsabi.Gaussian(np.zeros(3)),
            budget=400,
            tol=0,
            rng=seed,
        )
        assert abs(result.log_z - truth) < 3.5 * result.log_z_std
        assert result.log_z_std < 0.5
        sds = np.sqrt(np.diag(result.posterior.cov))
        assert np.all((sds > 0.6 * 0.22) & (sds < 1.4 * 0.22))
        assert result.certificate is not None
        if result.certificate.rests_on_points:
            said = {"check points": "check points alone", "bulk": "no model has learnt of"}
            assert any(said[result.certificate.source] in text for text in result.notes)
            assert len(result.posterior.points) <= result.certificate.n_points


# -- each remark by itself --------------------------------------------------------------------------------------------

NAMES = ("slope", "offset")
CERTIFICATE = Certificate(
    log_z=-0.7, log_z_std=0.01, model_log_z=-0.7, model_log_z_std=0.01, check_log_z=-0.7, check_log_z_std=0.01,
    difference=0.5, n_points=20, effective_sample_size=15.0, pareto_k=0.2, wsabi_share=0.5, uncertainty=0.01,
    model_log_var=-10.0,
)  # fmt: skip
EVEN = WeightedSamples(np.zeros((1000, 2)), np.full(1000, 1e-3), NAMES)  # a posterior with draws enough


def remarks(state: State, estimate: Estimate | None = None, noise: float = 0.0, **certificate: Any) -> Remarks:
    if estimate is None:
        estimate = Estimate(-0.7, ErrorBudget(0.01), ModelBelief(-0.7, -10.0), replace(CERTIFICATE, **certificate))
    return remarks_on_adaptive(state, estimate, EVEN, state.data.log_l, noise, NAMES)


def warned(state: State, **certificate: Any) -> str:
    """The one warning there is; nothing where there is none."""
    found = remarks(state, **certificate).warnings
    assert len(found) <= 1
    return "".join(found)


def after_searches(state: State, *searches: SearchRecord) -> State:
    gains = tuple(None if search.outcome == "unfinished" else 0.0 for search in searches)
    return replace(state, known=replace(state.known, searches=searches, gains=gains))


def test_no_warning_when_all_is_well(calm: State) -> None:
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
def test_warnings_of_the_check(calm: State, certificate: dict[str, Any], text: str) -> None:
    assert re.search(text, warned(calm, **certificate))


def test_a_pareto_k_that_is_not_known_is_no_warning(calm: State) -> None:
    assert not warned(calm, pareto_k=math.nan)


@pytest.mark.parametrize(
    ("outcomes", "text"),
    [
        (["new region", "unfinished"], "The last search for modes was given up before it had ended"),
        (["new region", "known region", "new region"], "The last of 3 searches still found a new mode"),
        (["new region"], "Only one search for modes was possible"),
    ],
)
def test_warnings_of_the_searches(calm: State, outcomes: list[Any], text: str) -> None:
    assert text in warned(after_searches(calm, *(SearchRecord(10, -0.7, outcome) for outcome in outcomes)))


def test_a_search_that_is_still_hot_is_a_warning(calm: State) -> None:
    """The one warning, also where it is why there was no other search."""
    known = calm.known.with_explorer(0, replace(calm.known.explorers[0], temperature=7.0))
    hot = replace(calm, known=known)
    for state in (hot, after_searches(hot, hot.known.searches[0])):
        assert "while a search was still climbing" in warned(state)


def test_images_not_searched_are_a_warning(calm: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "unsearched_images", [0.004, 0.005])
    assert not warned(calm)  # less than a hundredth
    monkeypatch.setattr(State, "unsearched_images", [0.5, 0.5])
    assert warned(calm).startswith("2 images of a known mode")


def test_images_too_many_to_follow_are_a_warning(calm: State) -> None:
    beyond = (Symmetry.of(2, reversed_axes=range(2)),)
    state = replace(calm, known=replace(calm.known, beyond=beyond))
    assert "1 times the evidence found lies in further images" in warned(state)


def test_searches_that_end_in_different_places_are_a_warning(calm: State) -> None:
    """Four kinds met once and none twice: 4·3/2, held to the three searches, of a quarter each."""
    regions = tuple(replace(region, hits=1) for region in calm.known.regions)
    state = replace(calm, known=replace(calm.known, regions=regions, n_negligible=3))
    text = "keep ending in different places: modes that were not found may hold 0.75 times the evidence"
    assert text in warned(state)


@pytest.mark.parametrize(("shift", "named"), [(0.0, []), (2.4, []), (2.8, ["slope"]), (-2.8, ["slope"])])
def test_a_posterior_at_the_edge_of_the_prior(calm: State, shift: float, named: list[str]) -> None:
    """The outermost hundredth of N(0, 1) begins at 2.576."""
    assert calm.models is not None
    explorers = {part.family: part.explorer for part in calm.models.parts}
    mean = np.array([shift, 0.0])
    moved = {
        family: replace(explorer, frame=replace(explorer.frame, mean=mean)) for family, explorer in explorers.items()
    }
    found = remarks(replace(calm, models=calm.models.with_originals(moved)))
    assert found.warnings == ()
    assert [next(name for name in NAMES if f"along {name}" in text) for text in found.notes] == named


@pytest.mark.parametrize(("n", "of", "notes", "text"), [
    (2, 8, ("The likelihood is zero on about 25% of the prior (2 of 8 draws).",), ""),
    (9, 10, ("The likelihood is zero on about 90% of the prior (9 of 10 draws).",),
     "Only 1 draws of the prior met a positive likelihood"),
])  # fmt: skip
def test_infeasible_mass_is_reported_as_a_share(
    calm: State, monkeypatch: pytest.MonkeyPatch, n: int, of: int, notes: tuple[str, ...], text: str
) -> None:
    monkeypatch.setattr(Evaluations, "n_draws", of)
    monkeypatch.setattr(Evaluations, "n_infeasible", n)
    assert remarks(calm).notes == notes
    assert bool(warned(calm)) == bool(text)
    assert text in warned(calm)


def test_warnings_common_to_all_models(calm: State) -> None:
    estimate = Estimate(math.nan, ErrorBudget(0.01), ModelBelief(-0.7, -10.0, variance_clipped=True), CERTIFICATE)
    found = remarks(calm, estimate, noise=0.25)
    assert any("mean of Z is not positive" in text for text in found.warnings)
    assert any("gave two values 0.25 nats apart" in text for text in found.warnings)
    assert len(found.warnings) == 2
    assert ["below round-off" in text for text in found.notes] == [True]


def plain(n: int) -> tuple[SequentialModel, Estimate]:
    """One warped GP under the prior after n evaluations, and its estimate."""
    model = SequentialModel(PRIOR, wsabi.Settings(measure="prior"), np.random.default_rng(0))
    for _ in range(n):
        X = model.propose(1, np.empty((0, 2)))
        model.observe(X, np.array([gaussian(X[0])]))
    estimate = plain_estimate(model)
    assert estimate is not None
    return model, estimate


def test_few_points_near_the_best() -> None:
    found = remarks_on_plain(*plain(12), np.array([0.0, *np.full(11, -50.0)]), 0.0).warnings
    assert len(found) == 1
    assert found[0].startswith("Only 1 of 12 evaluations lie within 5 nats of the highest log-likelihood")


def test_length_scales_and_jitter_at_their_ends() -> None:
    model, estimate = plain(30)
    model.fits.append(FitRecord(30, (math.exp(-LOG_BOUND), 1.0), 1.0, 0.0, 5, True, True))
    model.max_jitter = 1e-6
    found = remarks_on_plain(model, estimate, model.log_l, 0.0)
    assert any("lower end of its range" in text for text in found.warnings)
    assert any("relative jitter of 1e-06" in text for text in found.notes)
