"""Cross-fitting: a surrogate without one check point is the one that has never seen it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from found_by_hand import a_fitted_explorer, known_with
from wsabi.adaptive.check.crossfit import CrossFit
from wsabi.adaptive.models import Models
from wsabi.adaptive.search.explorer import Explorer
from wsabi.adaptive.surrogate.frame import Frame
from wsabi.adaptive.symmetry.group import Symmetry, reflected
from wsabi.adaptive.tuning import TUNING, tuned
from wsabi.settings import Settings


@pytest.fixture(autouse=True)
def no_jitter() -> Iterator[None]:
    """It follows the mean diagonal of what is factored at once, and would differ with what is left out."""
    with tuned("surrogate", jitter=0.0):
        yield


TURN = Symmetry((2, 0, 1), (1, -1, 1))  # not its own inverse


def smooth(X: np.ndarray) -> np.ndarray:
    return np.asarray(-0.5 * np.square(X).sum(axis=1) + 0.7 * np.sin(3.0 * X[:, 0] + X[:, -1]))


def an_explorer(centre: float, X: np.ndarray) -> Explorer:
    dim = X.shape[1]
    return a_fitted_explorer(Frame.of(np.full(dim, centre), 0.4 * np.eye(dim)), X, smooth(X))


def two_models(dim: int = 2) -> Models:
    X = np.random.default_rng(1).standard_normal((15, dim))
    known = known_with([an_explorer(centre, X) for centre in (0.6, -0.6)])
    return Models.of(known, Settings(), X, smooth(X), np.random.default_rng(2))


def a_region_and_its_image() -> Models:
    X = np.random.default_rng(1).standard_normal((25, 3))
    explorer = an_explorer(0.5, X)
    known = known_with([reflected(explorer, TURN), explorer], [0, 0], [TURN, None])
    return Models.of(known, Settings(), X, smooth(X), np.random.default_rng(2))


def check_points(dim: int, n: int = 6) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((n, dim))


def test_without_each_is_what_surrogates_say_that_never_had_it() -> None:
    """And the last row is what they say who had all."""
    regions, X = two_models(), check_points(2)
    places = np.concatenate([np.random.default_rng(4).standard_normal((20, 2)), X])
    rows = CrossFit.of(regions, X, smooth(X), len(X)).without_each(places)
    assert rows.shape == (len(X) + 1, len(places))
    for j, row in enumerate(rows):
        others = np.delete(X, j, axis=0) if j < len(X) else X
        without = CrossFit.of(regions, others, smooth(others), len(others)).regions
        assert_allclose(row, without.surrogate(places)[0], rtol=1e-7, atol=1e-7)
    assert np.max(np.abs(rows[:-1] - rows[-1])) > 0.1  # or it would make no difference


def test_what_is_no_datum_has_no_row() -> None:
    """Far more check points than a surrogate has data: memory grows with the latter."""
    regions, X = two_models(), check_points(2)
    X[4] = 50.0
    with tuned("search", max_data=5):
        crossfit = CrossFit.of(regions, X, smooth(X), len(X))
        assert_array_equal(crossfit.numbered, [0, 1, 2, 3, 5])
        rows = crossfit.without_each(X)
        own = crossfit.without_own(X)
    assert rows.shape == (6, 6)
    assert_array_equal(own[[0, 1, 2, 3, 5]], rows[np.arange(5), [0, 1, 2, 3, 5]])
    assert own[4] == rows[-1, 4]
    assert len(crossfit.numbered) == 6  # of so few, each


def test_an_image_goes_with_the_point_that_it_is_an_image_of() -> None:
    regions, X = a_region_and_its_image(), check_points(3)
    both, twice = np.concatenate([X, TURN.image(X)]), np.tile(smooth(X), 2)
    places = np.random.default_rng(4).standard_normal((20, 3))
    rows = CrossFit.of(regions, both, twice, len(X)).without_each(places)
    for j, row in enumerate(rows[:-1]):
        kept = np.arange(len(both)) % len(X) != j
        without = CrossFit.of(regions, both[kept], twice[kept], len(X) - 1).regions
        assert_allclose(row, without.surrogate(places)[0], rtol=1e-7, atol=1e-7)


def test_what_was_fitted_to_the_training_data_stays_as_it_was() -> None:
    """Points far above, far away or of zero likelihood change neither q, θ, nor what the best value is."""
    regions, X = two_models(), check_points(2)
    X[0], log_l = 300.0, smooth(X)
    log_l[1], log_l[2] = log_l[1] + 50.0, -np.inf
    before = [part.explorer.surrogate for part in regions.parts]
    crossfit = CrossFit.of(regions, X, log_l, len(X))
    for part, new, old, owners in zip(regions.parts, crossfit.regions.parts, before, crossfit.owners, strict=True):
        assert part.explorer.surrogate is old
        assert new.explorer.surrogate is not None
        assert old is not None
        assert new.explorer.surrogate.theta is old.theta
        assert (new.explorer.top, new.explorer.depth) == (part.explorer.top, part.explorer.depth)
        assert new.explorer.frame is part.explorer.frame
        assert_array_equal(owners, [1, 3, 4, 5])
    assert not crossfit.is_plain
    assert CrossFit.without_any(regions, len(X)).is_plain


def test_no_more_than_so_many_and_the_first_ones() -> None:
    regions, X = two_models(), check_points(2)
    with tuned("search", max_data=4):
        assert_array_equal(CrossFit.of(regions, X, smooth(X), len(X)).owners[0], [0, 1, 2, 3])


@pytest.mark.parametrize("told", [False, True])
def test_standard_errors_are_those_of_surrogates_that_never_had_the_point(told: bool) -> None:
    regions, X = two_models(), check_points(2)
    log_l = smooth(X)
    log_l[2] = -np.inf
    crossfit = CrossFit.of(regions, X, log_l, len(X)) if told else CrossFit.without_any(regions, len(X))
    z = crossfit.standard_errors(X, log_l)
    assert z[2] == 0.0
    for j in (0, 1, 3, 4, 5):
        others = np.delete(np.arange(len(X)), j)
        known = CrossFit.of(regions, X[others], log_l[others], len(others)).regions if told else regions
        part = known.parts[int(np.argmax(known.log_terms(X[[j]])[:, 0]))]
        assert part.explorer.surrogate is not None
        mean, variance = part.explorer.surrogate.predict(part.explorer.frame.whiten(X[[j]]))
        error = log_l[j] - part.explorer.top - mean[0]
        assert_allclose(z[j], error / np.sqrt(variance[0] + TUNING.search.resolution**2), rtol=1e-6)


def test_without_check_points_there_is_nothing_to_add() -> None:
    regions = two_models()
    nothing = np.empty((0, 2))
    crossfit = CrossFit.of(regions, nothing, np.empty(0), 1)
    assert crossfit.is_plain
    assert crossfit.regions.explorers == regions.explorers
