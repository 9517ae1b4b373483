"""The algorithm's choices, in one frozen dataclass that most users never touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from wsabi._core.checks import whole_number
from wsabi.gp.kernel import SquaredExponential

__all__ = ["Acquisition", "MeasureChoice", "Method", "Modes", "Refit", "Search", "Settings"]

Method = Literal["wsabi-l", "wsabi-m", "bq"]
Acquisition = Literal["uncertainty", "expected-entropy"]
MeasureChoice = Literal["adaptive", "prior"]
Search = Literal["pool", "cma-es"]
Refit = Literal["geometric", "every"]
Modes = Literal["any", "one"]
Bulk = Literal["auto", "off"]

DEFAULT_CHECK_SHARE = 0.2  # of the budget: a hundred evaluations then have twenty check points, enough for a variance


@dataclass(frozen=True)
class Settings:
    """Choices of the algorithm.

    Parameters
    ----------
    method : model of ℓ: WSABI-L (linearised), WSABI-M (moment-matched) or "bq", Bayes-Hermite (GP on ℓ itself).
    acquisition : "uncertainty", where ℓπ is most uncertain, or "expected-entropy", where the expected variance of Z
        after the sample is least.
    measure : "adaptive", where modes are searched and the measure is matched to them (:mod:`wsabi.adaptive`), or
        "prior", plain WSABI against the prior itself.
    search : how the acquisition is maximised: "pool" of cached candidates with a gradient polish, or "cma-es".
    refit : when hyperparameters are learnt: as the data grow by a fifth ("geometric"), or at "every" sample.
    alpha : offset of the warp, as a fraction of min ℓ; "auto" is zero (see :func:`wsabi.quadrature.warp.offset`).
    kernel : a fixed kernel in the user's units (standardised units for priors that are not Gaussian, uniform or
        polynomial), or None to learn it.
    initial : size of the first design of ``measure="prior"``; None is 2(D + 1). The adaptive measure has its own.
    certify : share of the budget that the adaptive measure spends on check points, which no model has seen; None is
        0.2. ``measure="prior"`` has no check points.
    exchangeable : groups of parameter names that can be exchanged as wholes without changing ℓπ, such as
        ``[("mu1", "sigma1"), ("mu2", "sigma2")]`` for two components of a mixture. The name of a vector stands for the
        whole vector. A few evaluations prove it before it is used; where they refute it, a warning says so.
    modes : "any" number of modes, or "one", a promise that there is one: then nothing is searched for after the first
        region, except where an evaluation contradicts the promise, and no part of the error bar is for unseen modes.
    min_searches : number of searches from the prior, at least, before a run may end by its tolerance.
    starts : points that are believed to lie near modes: (D,) or (K, D), a dict or a list of dicts, such as a best fit
        or the draws of an MCMC chain, in the user's coordinates. They are searched around first, as far as no region
        found before holds them, and never trusted alone: searches from the prior follow.
    bulk : whether thousands of points that no model learns of may be evaluated once the models are checked, where the
        likelihood takes less time than the engine: "auto", where they lower the error fastest, or "off".
    """

    method: Method = "wsabi-l"
    acquisition: Acquisition = "uncertainty"
    measure: MeasureChoice = "adaptive"
    search: Search = "pool"
    refit: Refit = "geometric"
    alpha: float | Literal["auto"] = "auto"
    kernel: SquaredExponential | None = None
    initial: int | None = None
    certify: float | None = None
    exchangeable: Sequence[Sequence[str]] | None = None
    modes: Modes = "any"
    min_searches: int | None = None
    bulk: Bulk = "auto"
    starts: Any = None

    def __post_init__(self) -> None:
        _check_choice("modes", self.modes, Modes)
        _check_choice("bulk", self.bulk, Bulk)
        if self.min_searches is not None:
            object.__setattr__(self, "min_searches", whole_number("min_searches", self.min_searches))
            if self.measure == "prior":
                raise ValueError("min_searches needs measure='adaptive': the prior as measure does not search.")
            if self.modes == "one":
                raise ValueError("min_searches contradicts modes='one', which promises that one search is enough.")
        if self.starts is not None:
            if self.measure == "prior":
                raise ValueError("starts needs measure='adaptive': the prior as measure does not search.")
            object.__setattr__(self, "starts", _plain_points(self.starts))
        _check_choice("method", self.method, Method)
        _check_choice("acquisition", self.acquisition, Acquisition)
        _check_choice("measure", self.measure, MeasureChoice)
        _check_choice("search", self.search, Search)
        _check_choice("refit", self.refit, Refit)
        if self.alpha != "auto" and not (isinstance(self.alpha, int | float) and 0.0 <= self.alpha < 1.0):
            raise ValueError(f"alpha must be 'auto' or a fraction of min ℓ in [0, 1); got {self.alpha!r}.")
        if self.kernel is not None and not isinstance(self.kernel, SquaredExponential):
            raise TypeError(f"kernel must be a SquaredExponential or None; got {type(self.kernel).__name__}.")
        if self.kernel is not None and self.measure == "adaptive":
            raise ValueError("a fixed kernel needs measure='prior': the adaptive measure has coordinates of its own.")
        if self.certify is not None and not 0.0 <= self.certify <= 0.5:
            raise ValueError(f"certify must be a share between 0 and 0.5; got {self.certify!r}.")
        if self.certify and self.measure == "prior":
            raise ValueError(
                f"certify={self.certify!r} needs measure='adaptive': the prior as measure has no check points."
            )
        if self.initial is not None and self.measure == "adaptive":
            raise ValueError("initial needs measure='prior': the adaptive measure begins with a design of its own.")
        if self.initial is not None:
            object.__setattr__(self, "initial", whole_number("initial", self.initial))
        if self.exchangeable is not None and self.measure == "prior":
            raise ValueError("exchangeable needs measure='adaptive': the prior as measure does not use symmetries.")
        if self.exchangeable is not None:
            object.__setattr__(self, "exchangeable", _checked_groups(self.exchangeable))

    @property
    def check_share(self) -> float:
        """Share of the budget for check points."""
        if self.measure == "prior":
            return 0.0
        return DEFAULT_CHECK_SHARE if self.certify is None else self.certify

    @classmethod
    def paper(cls, method: Method = "wsabi-l") -> Settings:
        """As the paper where it speaks, with choices of ours where it is silent.

        The paper says: a GP of zero mean on ℓ̃ with the squared-exponential kernel, the prior as measure, uncertainty
        sampling, α = 0.8 min ℓ (section 3, footnote), and CMA-ES to maximise the acquisition (section 4.2).

        Notes
        -----
        Our choices, where the paper is silent:

        - There is one length-scale per axis, and a refit at every sample.
        - Length-scales are MAP values under log l_d ~ N(½ log D, 1.5²), in standard deviations of the measure, found by
          L-BFGS-B between 1e-3 and 1e3 of these (:mod:`wsabi.gp.fit`).
        - λ is profiled out, λ² = ℓ̃ᵀR⁻¹ℓ̃/N, and a penalty keeps it below about 100 times the r.m.s. of ℓ̃.
        - K has a relative jitter of 1e-10 on its diagonal, more where the factorisation fails.
        - The first design has 2(D + 1) points: the mean of the measure, then a Latin hypercube mapped through it.
        - CMA-ES starts from the best of a pool of 256 D candidates (512 to 2,048), with steps of half a standard
          deviation of the measure, and has 100(D + 2) evaluations of the acquisition.
        """
        return cls(
            method=method,
            measure="prior",
            search="cma-es",
            refit="every",
            alpha=0.8,  # paper section 3, footnote
        )


def _plain_points(starts: Any) -> tuple[Any, ...]:
    """Points as a tuple of tuples of numbers, or of dicts, which can be compared and kept in a file."""
    if isinstance(starts, Mapping):
        starts = [starts]
    if isinstance(starts, Sequence) and starts and isinstance(starts[0], Mapping):
        return tuple({str(key): np.asarray(value).tolist() for key, value in point.items()} for point in starts)
    try:
        points = np.array(starts, dtype=np.float64, ndmin=2)
    except (TypeError, ValueError) as error:
        raise TypeError(f"starts must be points, (D,) or (K, D), or dicts of the parameters; {error}.") from None
    if points.ndim != 2 or not points.size:
        raise ValueError(f"starts has shape {np.shape(starts)}; expected (D,) or (K, D), one row per point.")
    return tuple(map(tuple, points.tolist()))


def _check_choice(name: str, value: object, literal: object) -> None:
    choices = get_args(literal)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")


def _checked_groups(exchangeable: object) -> tuple[tuple[str, ...], ...]:
    """Groups of names, at least two and of equal length; a name by itself is a group of one."""
    if isinstance(exchangeable, str) or not isinstance(exchangeable, Sequence):
        raise TypeError(
            f'exchangeable must be a list of groups of names, such as [("mu1", "sigma1"), ("mu2", "sigma2")]; got '
            f"{exchangeable!r}."
        )
    groups = tuple((group,) if isinstance(group, str) else group for group in exchangeable)
    for group in groups:
        if not isinstance(group, Sequence) or not all(isinstance(name, str) for name in group):
            raise TypeError(f"exchangeable must hold groups of parameter names, as strings; got {group!r}.")
    if len(groups) < 2:
        raise ValueError(f"exchangeable must have two groups of names or more; got {len(groups)}.")
    lengths = [len(group) for group in groups]
    if len(set(lengths)) > 1 or lengths[0] == 0:
        raise ValueError(f"exchangeable must have groups of equal length, at least 1; got lengths {lengths}.")
    names = [name for group in groups for name in group]
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if twice is not None:
        raise ValueError(f"exchangeable must have every name at most once; it has {twice!r} twice.")
    return tuple(tuple(group) for group in groups)
