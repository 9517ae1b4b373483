"""Small integrands with known Z, each hard in its own way: narrow, curved, ringed, heavy-tailed, kinked, cut off."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from wsabi._core.logspace import log_sum_exp
from wsabi._core.types import Array
from wsabi.priors import Gaussian, Uniform
from wsabi.problems._problem import LOG_2PI, Problem, checked_dim, require_positive, unit_prior

__all__ = [
    "banana",
    "constant",
    "correlated_gaussian",
    "eggbox",
    "infeasible_half",
    "narrow_gaussian",
    "plateau",
    "product_widths",
    "ridge",
    "shells",
    "student_tails",
]

EXACT = "exact: closed form"


def _gaussian_problem(name: str, likelihood: Gaussian, description: str) -> Problem:
    """ℓ = N(x; m, S) under N(0, I): Z = N(m; 0, S + I)."""
    dim = likelihood.dim
    evidence = Gaussian(np.zeros(dim), likelihood.cov + np.eye(dim))
    log_z = float(evidence.log_pdf(likelihood.mean[None])[0])
    return Problem(name, unit_prior(dim), likelihood.log_pdf, log_z, 0.0, description, EXACT)


def correlated_gaussian(dim: int = 6, rho: float = 0.9, sd: float = 0.15, centre: float = 0.5) -> Problem:
    """ℓ = N(x; c·1, s²((1 − ρ)I + ρ 11ᵀ)) under N(0, I); Z is exact.

    Parameters
    ----------
    dim : D.
    rho : correlation ρ of every pair of axes, in (−1/(D − 1), 1).
    sd : s, the same on every axis.
    centre : c, the same on every axis.
    """
    dim = checked_dim(dim)
    require_positive(sd=sd)
    if not (rho < 1.0 and 1.0 + (dim - 1) * rho > 0.0):
        raise ValueError(f"rho must lie in (-1/(dim - 1), 1) for a covariance in {dim}-D; got {rho}.")
    cov = sd**2 * ((1.0 - rho) * np.eye(dim) + rho)
    description = f"Gaussian in {dim}-D, sd {sd:g}, correlation {rho:g} between all axes, centre {centre:g}"
    return _gaussian_problem("correlated_gaussian", Gaussian(np.full(dim, centre), cov), description)


def narrow_gaussian(dim: int = 2, sd: float = 1.0 / 30.0, centre: float = 1.0) -> Problem:
    """ℓ = N(x; c·1, s²I) under N(0, I), c one prior sd off on every axis; Z is exact."""
    dim = checked_dim(dim)
    require_positive(sd=sd)
    likelihood = Gaussian(np.full(dim, centre), np.full(dim, sd**2))
    description = f"narrow Gaussian in {dim}-D, sd {sd:.3g} of the prior's, {centre:g} prior sd off on every axis"
    return _gaussian_problem("narrow_gaussian", likelihood, description)


def product_widths(dim: int = 4, narrowest: float = 0.03, widest: float = 3.0) -> Problem:
    """A product of Gaussians whose sds grow geometrically from axis to axis, under N(0, I); Z is exact."""
    dim = checked_dim(dim, least=2)
    require_positive(narrowest=narrowest, widest=widest)
    sds = np.geomspace(narrowest, widest, dim)
    likelihood = Gaussian(np.full(dim, 0.5), np.square(sds))
    description = f"product of Gaussians in {dim}-D, sds from {narrowest:g} to {widest:g}, centre 0.5"
    return _gaussian_problem("product_widths", likelihood, description)


@dataclass(frozen=True)
class _Banana:
    """log N(x₁; 0, w₁²) + log N(x₂; b(x₁² − w₁²), w₂²)."""

    bend: float
    width: float
    thickness: float

    def __call__(self, X: Array) -> Array:
        along, across = X[:, 0] / self.width, X[:, 1] - self._crest(X[:, 0])
        squares = np.square(along) + np.square(across / self.thickness)
        return np.asarray(-0.5 * squares - math.log(self.width * self.thickness) - LOG_2PI)

    def _crest(self, x: Array) -> Array:
        return self.bend * (np.square(x) - self.width**2)

    def log_evidence(self) -> float:
        """x₂ is integrated in closed form, N(crest; 0, 1 + w₂²); x₁ by the trapezoid rule.

        The integrand is analytic and gone at ±9 sds, so the rule converges geometrically: 2,000 points suffice for
        round-off.
        """
        x, step = np.linspace(-9.0 * self.width, 9.0 * self.width, 2001, retstep=True)
        variance = 1.0 + self.thickness**2
        squares = np.square(x / self.width) + np.square(x) + np.square(self._crest(x)) / variance
        constant = 3.0 * LOG_2PI + 2.0 * math.log(self.width) + math.log(variance)
        return log_sum_exp(-0.5 * squares) - 0.5 * constant + math.log(step)


def banana(bend: float = 1.0, width: float = 1.0, thickness: float = 0.15) -> Problem:
    """A Gaussian bent along a parabola, 2-D, under N(0, I).

    ℓ(x) = N(x₁; 0, w²) N(x₂; b(x₁² − w²), t²)

    Parameters
    ----------
    bend, width, thickness : b, w and t.
    """
    require_positive(width=width, thickness=thickness)
    function = _Banana(bend, width, thickness)
    description = f"banana in 2-D, bend {bend:g}, width {width:g}, thickness {thickness:g}"
    reference = "x2 in closed form, x1 by a converged trapezoid rule; round-off"
    return Problem("banana", unit_prior(2), function, function.log_evidence(), 0.0, description, reference)


@dataclass(frozen=True, eq=False)
class _Shells:
    """log Σ_± N(|x ∓ c e₁|; r, w²)."""

    offset: float
    radius: float
    width: float

    def __call__(self, X: Array) -> Array:
        rest = np.square(X[:, 1:]).sum(axis=1)
        left, right = (np.sqrt(np.square(X[:, 0] + s * self.offset) + rest) for s in (1.0, -1.0))
        terms = [-0.5 * np.square((d - self.radius) / self.width) for d in (left, right)]
        return np.asarray(np.logaddexp(*terms) - 0.5 * LOG_2PI - math.log(self.width))


def shells(dim: int = 2) -> Problem:
    """Two thin spherical shells of radius 2 and thickness 0.1, centres ±3.5 on the first axis, uniform on [−6, 6]^D.

    Z = 2 · 12^−D · S_D ∫ ρ^(D−1) N(ρ; 2, 0.1²) dρ, S_D = 2π^(D/2)/Γ(D/2)

    Notes
    -----
    The box cuts each shell five thicknesses beyond its crest at a single point; what is lost is below 1e-7 of Z.
    """
    dim = checked_dim(dim, least=2)
    function = _Shells(3.5, 2.0, 0.1)
    # E ρ^(D−1) is a polynomial moment: the Gauss-Hermite rule is exact up to degree 2·40 − 1.
    nodes, weights = special.roots_hermitenorm(40)
    moment = float(weights @ (2.0 + 0.1 * nodes) ** (dim - 1)) / math.sqrt(2.0 * math.pi)
    log_area = math.log(2.0) + 0.5 * dim * math.log(math.pi) - math.lgamma(0.5 * dim)
    log_z = math.log(2.0) - dim * math.log(12.0) + log_area + math.log(moment)
    description = f"two Gaussian shells in {dim}-D, radius 2, thickness 0.1"
    reference = "radial integral in closed form; mass cut off by the box, neglected, is below 1e-7"
    prior = Uniform(np.full(dim, -6.0), np.full(dim, 6.0))
    return Problem("shells", prior, function, log_z, 1e-7, description, reference)


def _eggbox_log_l(X: Array) -> Array:
    """(2 + cos(x₁/2) cos(x₂/2))⁵."""
    return np.asarray((2.0 + np.cos(0.5 * X).prod(axis=1)) ** 5)


def eggbox() -> Problem:
    """log ℓ = (2 + cos(x₁/2) cos(x₂/2))⁵, uniform on [0, 10π]²: eighteen equal peaks, 243 nats high, ten on the edge.

    Notes
    -----
    cos(x/2) is even about every multiple of 2π, so its mean over [0, 10π] is that over [0, 2π], where the midpoint
    rule converges geometrically: the peaks' sd of 0.1 is four steps of 2π/256.
    """
    cosines = np.cos((np.arange(256) + 0.5) * (math.pi / 256))
    log_z = log_sum_exp(np.ravel((2.0 + np.outer(cosines, cosines)) ** 5)) - 2.0 * math.log(256)
    prior = Uniform(np.zeros(2), np.full(2, 10.0 * math.pi))
    reference = "midpoint rule over half a period, converged to round-off"
    return Problem("eggbox", prior, _eggbox_log_l, log_z, 0.0, "egg box in 2-D, 18 equal peaks", reference)


@dataclass(frozen=True, eq=False)
class _Student:
    """log of the multivariate Student density t_ν(x; c·1, s²I)."""

    dim: int
    dof: float
    sd: float
    centre: float

    def __call__(self, X: Array) -> Array:
        squares = np.square((X - self.centre) / self.sd).sum(axis=1)
        half = 0.5 * (self.dof + self.dim)
        constant = math.lgamma(half) - math.lgamma(0.5 * self.dof) - 0.5 * self.dim * math.log(self.dof * math.pi)
        return np.asarray(constant - self.dim * math.log(self.sd) - half * np.log1p(squares / self.dof))

    def log_evidence(self) -> float:
        """t_ν is a Gaussian of covariance s²I/u mixed over u ~ Γ(ν/2, rate ν/2), and N(c·1; 0, (s²/u + 1)I) is exact.

        The integral over v = log u by the trapezoid rule: analytic, with tails exp(½νv) and exp(−½νe^v).
        """
        shape = 0.5 * self.dof
        v, step = np.linspace(-80.0 / shape, 6.0 - math.log(min(shape, 1.0)), 8001, retstep=True)
        log_weight = shape * math.log(shape) - math.lgamma(shape) + shape * v - shape * np.exp(v)
        variance = self.sd**2 * np.exp(-v) + 1.0
        log_normal = -0.5 * self.dim * (self.centre**2 / variance + np.log(variance) + LOG_2PI)
        return log_sum_exp(log_weight + log_normal) + math.log(step)


def student_tails(dim: int = 2, dof: float = 2.0, sd: float = 0.1, centre: float = 1.0) -> Problem:
    """A multivariate Student density, heavy-tailed within the prior N(0, I).

    ℓ(x) = t_ν(x; c·1, s²I)

    Parameters
    ----------
    dim : D.
    dof : ν.
    sd : s, the scale of the core.
    centre : c, the same on every axis.
    """
    dim = checked_dim(dim)
    require_positive(dof=dof, sd=sd)
    function = _Student(dim, dof, sd, centre)
    description = f"Student density in {dim}-D with {dof:g} degrees of freedom, scale {sd:g}, centre {centre:g}"
    reference = "scale mixture of Gaussians, one converged trapezoid rule; round-off"
    return Problem("student_tails", unit_prior(dim), function, function.log_evidence(), 0.0, description, reference)


@dataclass(frozen=True)
class _Ridge:
    """−|d·x − c|/w, d = 1/√D."""

    offset: float
    width: float

    def __call__(self, X: Array) -> Array:
        return np.asarray(-np.abs(X.sum(axis=1) / math.sqrt(X.shape[1]) - self.offset) / self.width)

    def log_evidence(self) -> float:
        """d·x ~ N(0, 1), so Z = exp(½h²)(exp(hc) Φ(−c − h) + exp(−hc) Φ(c − h)), h = 1/w."""
        h, c = 1.0 / self.width, self.offset
        return 0.5 * h * h + float(np.logaddexp(h * c + special.log_ndtr(-c - h), -h * c + special.log_ndtr(c - h)))


def ridge(dim: int = 3, offset: float = 0.5, width: float = 0.1) -> Problem:
    """A straight ridge with a kinked crest across the diagonal, flat along it, under N(0, I); Z is exact.

    ℓ(x) = exp(−|Σx_d/√D − c|/w)

    Parameters
    ----------
    dim : D.
    offset, width : c and w.
    """
    dim = checked_dim(dim)
    require_positive(width=width)
    function = _Ridge(offset, width)
    description = f"kinked ridge in {dim}-D, width {width:g}, {offset:g} from the origin"
    return Problem("ridge", unit_prior(dim), function, function.log_evidence(), 0.0, description, EXACT)


@dataclass(frozen=True)
class _Plateau:
    """0 where every |x_d − c| ≤ h, the floor elsewhere."""

    centre: float
    half_width: float
    floor: float

    def __call__(self, X: Array) -> Array:
        return np.where(np.all(np.abs(X - self.centre) <= self.half_width, axis=1), 0.0, self.floor)


def plateau(dim: int = 2, centre: float = 0.5, half_width: float = 0.75, floor: float = -20.0) -> Problem:
    """ℓ = 1 on a box, exp(floor) outside it, under N(0, I); Z is exact.

    Z = p + (1 − p) exp(floor), p = (Φ(c + h) − Φ(c − h))^D

    Parameters
    ----------
    dim : D.
    centre, half_width : c and h, the same on every axis.
    floor : log ℓ outside; −inf is allowed.
    """
    dim = checked_dim(dim)
    require_positive(half_width=half_width)
    log_p = dim * math.log(special.ndtr(centre + half_width) - special.ndtr(centre - half_width))
    log_z = float(np.logaddexp(log_p, math.log1p(-math.exp(log_p)) + floor))
    description = f"plateau with sharp edges in {dim}-D, {2 * half_width:g} wide, {floor:g} nats outside"
    return Problem("plateau", unit_prior(dim), _Plateau(centre, half_width, floor), log_z, 0.0, description, EXACT)


@dataclass(frozen=True)
class _Constant:
    """The same log ℓ everywhere."""

    value: float

    def __call__(self, X: Array) -> Array:
        return np.full(len(X), self.value)


def constant(dim: int = 2, value: float = -3.0) -> Problem:
    """log ℓ = value everywhere under N(0, I): log Z = value."""
    dim = checked_dim(dim)
    return Problem("constant", unit_prior(dim), _Constant(value), value, 0.0, f"constant in {dim}-D", EXACT)


@dataclass(frozen=True)
class _InfeasibleHalf:
    """log N(x; c·1, s²I) where x₁ ≥ 0, −inf elsewhere."""

    centre: float
    sd: float

    def __call__(self, X: Array) -> Array:
        squares = np.square((X - self.centre) / self.sd).sum(axis=1)
        inside = -0.5 * squares - X.shape[1] * (0.5 * LOG_2PI + math.log(self.sd))
        return np.where(X[:, 0] >= 0.0, inside, -np.inf)


def infeasible_half(dim: int = 2, centre: float = 0.2, sd: float = 0.3) -> Problem:
    """A Gaussian likelihood that is zero over half of the prior N(0, I); Z is exact.

    ℓ(x) = N(x; c·1, s²I) [x₁ ≥ 0]; Z = N(c·1; 0, (1 + s²)I) Φ(c/(s √(1 + s²)))

    Parameters
    ----------
    dim : D.
    centre, sd : c and s.
    """
    dim = checked_dim(dim)
    require_positive(sd=sd)
    variance = 1.0 + sd**2
    log_gaussian = -0.5 * dim * (centre**2 / variance + math.log(variance) + LOG_2PI)
    log_z = log_gaussian + float(special.log_ndtr(centre / (sd * math.sqrt(variance))))
    description = f"Gaussian in {dim}-D, sd {sd:g}, cut off at x0 = 0, which is infeasible below"
    return Problem("infeasible_half", unit_prior(dim), _InfeasibleHalf(centre, sd), log_z, 0.0, description, EXACT)
