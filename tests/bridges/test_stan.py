"""``wsabi.from_stan`` with programs that BridgeStan compiles; where it has no sources for that, a skip says so."""

from __future__ import annotations

import json
import logging
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import wsabi
from bridging import imported, needs

pytestmark = [needs("bridgestan"), pytest.mark.filterwarnings("ignore:.*version of the compiled model:RuntimeWarning")]
T = np.linspace(-1.0, 1.0, 12)
Y = 0.7 - 1.2 * T + 0.8 * np.sin(40.0 * T)
DATA = {"N": 12, "t": T.tolist(), "y": Y.tolist(), "has_prior": 1, "normalised": 1}
NO_DATA = DATA | {"N": 0, "t": [], "y": []}
PRIOR = {"sigma": stats.halfnorm(0, 2), "c": [stats.norm(0, 2)] * 2}
LINE = """
data { int<lower=0> N; vector[N] t; vector[N] y; int has_prior; int normalised; }
parameters { vector[2] c; real<lower=0> sigma; }
model {
  if (has_prior) { c ~ normal(0, 2); sigma ~ normal(0, 2); target += normalised * log(2); }
  y ~ normal(c[1] + c[2] * t, sigma);
}
"""
SHARES = """
data { int S; int M; array[3] int n; }
parameters { array[S] simplex[3] p; ordered[M] q; real<lower=1> above; real<upper=-1> below; real<lower=2, upper=5> r; }
model { for (s in 1:S) n ~ multinomial(p[s]); q ~ normal(0, 1); }
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    bridgestan = imported("bridgestan")
    try:
        bridgestan.compile.verify_bridgestan_path(bridgestan.compile.get_bridgestan_path())
    except Exception as error:
        pytest.skip(f"the bridge to Stan is NOT tested: BridgeStan has no sources to compile with ({error})")
    folder = tmp_path_factory.mktemp("stan")
    for name, text in {"line": LINE, "shares": SHARES}.items():
        (folder / f"{name}.stan").write_text(text)
    return {name: str(bridgestan.compile_model(folder / f"{name}.stan")) for name in ("line", "shares")}


@pytest.fixture(scope="module")
def exact() -> float:
    def given(sigma: float) -> float:  # y ~ N(0, 4·11ᵀ + 4·ttᵀ + σ²I)
        cov = 4.0 + 4.0 * np.outer(T, T) + sigma**2 * np.eye(12)
        return float(np.exp(stats.multivariate_normal(cov=cov).logpdf(Y) + 10.0) * stats.halfnorm(0, 2).pdf(sigma))

    return math.log(integrate.quad(given, 1e-3, 20.0, epsrel=1e-9)[0]) - 10.0


def log_likelihood(x: np.ndarray) -> float:
    return float(stats.norm(x[0] + x[1] * T, x[2]).logpdf(Y).sum())


def log_prior(x: np.ndarray) -> float:
    return float(stats.norm(0, 2).logpdf(x[:2]).sum() + stats.halfnorm(0, 2).logpdf(x[2]))


def assert_gradient(model: wsabi.Model, x: np.ndarray) -> None:
    f = model.log_likelihood
    steps = 1e-6 * np.eye(len(x))
    assert model.grad is not None
    assert_allclose(model.grad(x), [(f(x + e) - f(x - e)) / 2e-6 for e in steps], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "how",
    [{}, {"prior": PRIOR}, {"prior": PRIOR, "prior_data": NO_DATA}, {"unconstrained": True}],
    ids=["by bounds", "prior", "prior_data", "unconstrained"],
)
def test_log_z_does_not_depend_on_how_the_density_is_taken_apart(compiled: Any, exact: float, how: Any) -> None:
    result = wsabi.integrate(wsabi.from_stan(compiled["line"], DATA, **how), budget=350, rng=0)
    assert abs(result.log_z - exact) < 4 * result.log_z_std + 0.01


def test_the_parts_of_the_density(compiled: Any) -> None:
    x = np.array([0.5, -1.0, 0.9])
    joint = log_likelihood(x) + log_prior(x)
    default = wsabi.from_stan(compiled["line"], DATA)
    assert default.names == ("c[0]", "c[1]", "sigma")
    expected = stats.t(4, 0, 10).logpdf(x[:2]).sum() + stats.lognorm(3).logpdf(x[2])
    assert default.prior.log_pdf(x[None])[0] == pytest.approx(expected)
    assert default.log_likelihood({"c": x[:2], "sigma": x[2]}) == pytest.approx(joint - expected)
    named = wsabi.from_stan(compiled["line"], DATA, PRIOR)  # its order is not that of the program
    assert named.log_likelihood(x) == pytest.approx(log_likelihood(x))
    apart = wsabi.from_stan(compiled["line"], DATA, prior_data=NO_DATA)
    assert apart.log_likelihood(x) == pytest.approx(log_likelihood(x))
    assert apart.prior.log_pdf(x[None])[0] == pytest.approx(log_prior(x))
    only = wsabi.from_stan(compiled["line"], DATA | {"has_prior": 0}, PRIOR, likelihood_only=True)
    assert only.log_likelihood(x) == pytest.approx(log_likelihood(x))
    free = wsabi.from_stan(compiled["line"], DATA, unconstrained=True)
    u = np.append(x[:2], np.log(x[2]))
    assert free.log_likelihood(u) == pytest.approx(joint + u[2] - stats.norm(0, 10).logpdf(u).sum())
    for model, point in ((default, x), (named, x), (apart, x), (only, x), (free, u)):
        assert_gradient(model, point)


def test_a_prior_that_is_not_normalised_is_found(compiled: Any) -> None:
    """The half of a normal density that a lower bound leaves: half of the evidence is missing."""
    half = {"normalised": 0}
    model = wsabi.from_stan(compiled["line"], DATA | half, PRIOR, prior_data=NO_DATA | half)
    with pytest.warns(wsabi.EvidenceWarning, match=r"logpdf integrates to about 0.5 over the reference, expected 1"):
        wsabi.integrate(model, budget=20, rng=0)


def test_what_breaks_a_constraint_or_is_rejected_is_zero_likelihood(
    compiled: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = wsabi.from_stan(compiled["line"], DATA)
    with caplog.at_level(logging.WARNING):
        assert model.log_likelihood(np.array([0.0, 0.0, -1.0])) == -np.inf
        assert model.log_likelihood(np.array([np.inf, 0.0, 1.0])) == -np.inf
    assert [record.message.split(";")[0] for record in caplog.records] == [
        "Stan rejects a point, which counts as zero likelihood"
    ]


def test_bounds_are_read_off_the_program(compiled: Any) -> None:
    model = wsabi.from_stan(compiled["shares"], {"S": 0, "M": 0, "n": [1, 2, 3]})
    low, high = model.prior.marginals.support
    assert_allclose(low, [1.0, -np.inf, 2.0])
    assert_allclose(high, [np.inf, -1.0, 5.0])
    medians = model.prior.marginals.to_user(np.zeros((1, 3)))[0]
    assert_allclose(medians, [2.0, -2.0, 3.5])


def test_simplexes_and_ordered_vectors(compiled: Any) -> None:
    counts = {"S": 1, "M": 0, "n": [3, 2, 1]}
    with pytest.raises(ValueError, match=r"have 6 elements of which only 5 are free, as those of a simplex.*unconstr"):
        wsabi.from_stan(compiled["shares"], counts)
    model = wsabi.from_stan(compiled["shares"], counts, unconstrained=True)
    assert len(model.names) == 5
    ordered = {"S": 0, "M": 2, "n": [3, 2, 1]}
    with pytest.raises(ValueError, match=r"bounds of q.2 are not two numbers: .* Give prior=, or unconstrained=True"):
        wsabi.from_stan(compiled["shares"], ordered)
    box = {"q": [stats.norm(0, 1)] * 2, "above": (1.0, 2.0), "below": (-2.0, -1.0), "r": (2.0, 5.0)}
    given = wsabi.from_stan(compiled["shares"], ordered, box)
    inside = np.array([-0.5, 0.5, 1.5, -1.5, 3.0])
    assert given.log_likelihood(inside) == pytest.approx(np.log(3.0))  # the uniform densities are 1, 1 and 1/3
    assert given.log_likelihood(inside[[1, 0, 2, 3, 4]]) == -np.inf
    assert_gradient(given, inside)


def test_models_libraries_pickles_and_files(compiled: Any, tmp_path: Path) -> None:
    bridgestan = imported("bridgestan")
    x = np.array([0.5, -1.0, 0.9])
    first = wsabi.from_stan(compiled["line"], DATA)
    value = first.log_likelihood(x)
    assert pickle.loads(pickle.dumps(first.log_likelihood))(x) == value
    apart = wsabi.from_stan(compiled["line"], DATA, prior_data=NO_DATA)
    assert pickle.loads(pickle.dumps(apart.prior)).log_pdf(x[None]) == apart.prior.log_pdf(x[None])
    made = bridgestan.StanModel(compiled["line"], json.dumps(DATA), warn=False)
    assert wsabi.from_stan(made).log_likelihood(x) == value
    with pytest.raises(TypeError, match="data: a StanModel has its own"):
        wsabi.from_stan(made, DATA)
    with pytest.raises(FileNotFoundError, match=r"there is no Stan program 'no\.stan'"):
        wsabi.from_stan("no.stan", DATA)
    (tmp_path / "bad.stan").write_text("parameters { real a }")
    with pytest.raises(RuntimeError, match=r"BridgeStan does not compile .*bad.stan: (?s:.*)Syntax error"):
        wsabi.from_stan(tmp_path / "bad.stan", DATA)


def test_a_prior_that_does_not_fit_is_refused(compiled: Any) -> None:
    line = compiled["line"]
    with pytest.raises(ValueError, match=r"prior has 2 parameters; the program has c \(2\), sigma"):
        wsabi.from_stan(line, DATA, [(0.0, 1.0)] * 2)
    with pytest.raises(ValueError, match=r"prior is of a, sigma; the program has, in this order, c \(2\), sigma"):
        wsabi.from_stan(line, DATA, {"a": [(0.0, 1.0)] * 2, "sigma": (0.0, 1.0)})
    with pytest.raises(TypeError, match="a Transform has none"):
        wsabi.from_stan(line, DATA, wsabi.Transform(lambda c: c, 3))
    with pytest.raises(ValueError, match="likelihood_only: the program has no prior, so prior must be given"):
        wsabi.from_stan(line, DATA, likelihood_only=True)
    with pytest.raises(ValueError, match="leave out likelihood_only"):
        wsabi.from_stan(line, DATA, PRIOR, likelihood_only=True, prior_data=NO_DATA)
