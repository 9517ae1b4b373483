"""Every number of the engine in one place: its value, its unit, what it decides, and the evidence for it.

``TUNING`` holds the numbers in sections, one section for each part of the engine: ``TUNING.search.span``. A study or a
test varies some of them for a while by :func:`tuned`. :func:`table` lists all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

__all__ = ["TUNING", "Evidence", "Number", "Tuning", "number", "table", "tuned"]

# derived: follows from a formula, given there. reference: published, with its source. measured: a committed script
# measures it, named there. guard: protects the arithmetic, and no result depends on it. chosen: a judgement, with its
# reason; nobody has measured it.
Evidence = Literal["derived", "reference", "measured", "guard", "chosen"]


@dataclass(frozen=True)
class Number:
    """What is known of one number."""

    section: str
    name: str
    value: float
    unit: str
    decides: str
    evidence: Evidence
    because: str


def number(value: float, *, unit: str, decides: str, evidence: Evidence, because: str) -> Any:
    """A field of a section: its value, and what :class:`Number` says of it."""
    return field(default=value, metadata={"unit": unit, "decides": decides, "evidence": evidence, "because": because})


# -- surrogate/: the Gaussian process on log ℓ ------------------------------------------------------------------------


@dataclass(frozen=True)
class SurrogateNumbers:
    """Numbers of the surrogate of log ℓ, its kernels and its coordinates."""

    # the kernel and its prior
    many_dimensions: int = number(
        20,
        unit="dimensions",
        decides="above it the numbers of data and draws follow the number of coefficients of a quadratic",
        evidence="measured",
        because="docs/experiments.md: with fixed numbers q ends 2 nats from an exact Gaussian in 20 "
        "dimensions, 7 in 25 and 17 in 30; no committed script repeats it",
    )
    offset_sd: float = number(
        10.0,
        unit="temperatures",
        decides="the prior sd of the constant of log ℓ",
        evidence="chosen",
        because="the values are taken relative to their maximum, so the constant is near zero",
    )
    slope_sd: float = number(
        3.0,
        unit="temperatures per sd of q",
        decides="the prior sd of the linear coefficients of log ℓ",
        evidence="chosen",
        because="the coordinates are whitened by q, so a slope is a shift of a few sds of q",
    )
    min_interaction_dimension: int = number(
        3,
        unit="dimensions",
        decides="the least number of parameters for which the kernel has interactions",
        evidence="chosen",
        because="in one and two dimensions there are data enough to learn any smooth function",
    )
    log_length_mean: float = number(
        0.5,
        unit="log sds of q",
        decides="the prior mean of log l − ½ log D and of log h: a length-scale of 1.6 sds per dimension",
        evidence="chosen",
        because="draws of q lie √D sds from the centre, so a length-scale of 1.6 √D sees its neighbours",
    )
    log_second_length_shift: float = number(
        -math.log(2.0),
        unit="nats",
        decides="the prior mean of log h of the second interaction, less that of the first",
        evidence="measured",
        because="docs/experiments.md: a second term that changes faster lowers the error; only "
        "the factor of two was tried, and no committed script repeats it",
    )
    log_plateau_mean: float = number(
        math.log(4.0),
        unit="log sds of q",
        decides="the prior mean of log s, the distance at which an axis of an interaction ends",
        evidence="chosen",
        because="at |u| = 1.645 sds, which holds nine tenths of q, tanh(u/s) differs from u/s by a twentieth at s = 4",
    )
    length_sd: float = number(
        0.7,
        unit="nats",
        decides="the prior sd of log l and log h",
        evidence="chosen",
        because="two sds are a factor of four",
    )
    scale_sd: float = number(
        1.5,
        unit="nats",
        decides="the prior sd of the log output scales",
        evidence="chosen",
        because="two sds are a factor of twenty",
    )
    axis_sd: float = number(
        1.0,
        unit="nats; for c sds of q",
        decides="the prior sd of log a, c and log s",
        evidence="chosen",
        because="two sds of log a and log s are a factor of seven, and two sds of c hold nearly all of q",
    )
    length_reach: float = number(
        2.5,
        unit="nats",
        decides="how far from its prior mean log l or log h may be learnt",
        evidence="guard",
        because="3.6 prior sds, so that the optimiser stays where the kernel matrix can be factored",
    )
    scale_reach: float = number(
        7.0,
        unit="nats",
        decides="how far from its prior mean a log output scale may be learnt",
        evidence="guard",
        because="4.7 prior sds, so that the optimiser stays where the kernel matrix can be factored",
    )
    strength_reach: float = number(
        4.0,
        unit="nats",
        decides="how far from its prior mean log a may be learnt",
        evidence="guard",
        because="four prior sds: an a of 1/55 leaves no interaction, and one of 55 leaves nothing else",
    )
    axis_reach: float = number(
        3.0,
        unit="nats; for c sds of q",
        decides="how far from its prior mean c or log s may be learnt",
        evidence="guard",
        because="three prior sds: an axis is straight, or ends where q does",
    )
    # learning θ
    learning_steps: int = number(
        20,
        unit="steps of L-BFGS-B",
        decides="how long θ is learnt each time",
        evidence="chosen",
        because="θ is learnt again as the data grow, and goes on from where it was",
    )
    learning_tolerance: float = number(
        1e-5,
        unit="relative",
        decides="the fall of the objective below which L-BFGS-B stops",
        evidence="chosen",
        because="an objective of hundreds of nats then is right to a few thousandths of a nat",
    )
    failed_objective: float = number(
        1e10,
        unit="nats",
        decides="what the objective counts where the kernel matrix cannot be factored",
        evidence="guard",
        because="it exceeds every objective that can be computed, and its differences are still finite",
    )
    # arithmetic
    jitter: float = number(
        1e-11,
        unit="of the mean diagonal of the kernel matrix",
        decides="the noise that is added to every value",
        evidence="guard",
        because="values of hundreds of nats make the diagonal 1e5 nats², of which this is noise of 1e-3 nats; the "
        "round-off of factoring 1,000 rows is a thirtieth of it",
    )
    jitter_growth: float = number(
        100.0,
        unit="factor",
        decides="how much more jitter a matrix gets that cannot be factored",
        evidence="guard",
        because="a θ that was learnt from other data may fit these so badly that round-off exceeds the jitter",
    )
    jitter_retries: int = number(
        2,
        unit="attempts",
        decides="how often the jitter grows before the matrix counts as singular",
        evidence="guard",
        because="10⁴ times the jitter is noise of a tenth of a nat, beyond which the surrogate says nothing",
    )
    min_variance: float = number(
        1e-8,
        unit="nats²",
        decides="the least predictive variance",
        evidence="guard",
        because="the prior variance of the quadratic is large and cancels in the difference; 1e-8 nats² is negligible",
    )
    thin_width: float = number(
        1e-5,
        unit="of the largest width",
        decides="the width of q below which its axes come from singular values instead of eigenvalues",
        evidence="guard",
        because="the square of the width is 1e-10 of the largest, so a covariance keeps six of its sixteen digits",
    )
    max_bend: float = number(
        300.0,
        unit="widths of a bent axis",
        decides="the argument at which cosh is evaluated at most",
        evidence="guard",
        because="cosh² overflows at 355; at 300 its inverse is zero for all purposes",
    )
    block: int = number(
        1 << 15,
        unit="entries",
        decides="how many entries of the kernel matrix are computed at a time",
        evidence="guard",
        because="it decides speed alone: three such blocks fit into the cache of one core",
    )
    # Student mixtures shaped like the posterior of the surrogate
    degrees: float = number(
        5.0,
        unit="degrees of freedom",
        decides="the tails of every Student component",
        evidence="chosen",
        because="the tails are heavier than those of any Gaussian, and four moments exist",
    )
    shape_rounds: int = number(
        3,
        unit="rounds",
        decides="how often draws are made and a mixture is fitted to them",
        evidence="chosen",
        because="each round starts from the shape of the last one, and little changes after three",
    )
    shape_draws: int = number(
        1000,
        unit="draws",
        decides="how many draws of the surrogate's posterior are made in each round",
        evidence="chosen",
        because="each component gets a hundred and more",
    )
    shape_steps: int = number(
        12,
        unit="steps",
        decides="how many steps of expectation maximisation fit a mixture in each round",
        evidence="chosen",
        because="a proposal needs the rough shape only",
    )
    fine_steps: int = number(
        30,
        unit="steps",
        decides="how many steps of expectation maximisation fit a mixture that is not fitted again",
        evidence="chosen",
        because="no later round improves it; the likelihood has mostly converged by then",
    )
    components: int = number(
        8,
        unit="components",
        decides="how many Student components follow the shape of one region",
        evidence="chosen",
        because="as many pieces follow an arc or an arm to a few per cent",
    )
    reaching_share: float = number(
        0.2,
        unit="share of the draws",
        decides="how many draws come from the mixture that is fitted to the square root of the target",
        evidence="chosen",
        because="enough to meet mass that the shape has missed, and too few to matter where there is none",
    )
    even_share: float = number(
        0.6,
        unit="effective sample size over draws",
        decides="above it the shape is good enough, and no further mixture is fitted",
        evidence="chosen",
        because="importance sampling from such a mixture costs less than twice as many draws as from the target",
    )
    prior_points: float = number(
        2.0,
        unit="observations per dimension",
        decides="how much each covariance of a mixture is shrunk towards that of an equal part of the whole",
        evidence="chosen",
        because="a covariance of fewer observations than that is singular or nearly so",
    )
    ridge: float = number(
        64.0,
        unit="machine epsilons, of the trace",
        decides="what is added to the covariance of a component that cannot be factored",
        evidence="guard",
        because="the round-off of a covariance of a few tens of dimensions is a few tens of machine epsilons",
    )


# -- search/: annealing, choice of points, known regions ---------------------------------------------------------------


@dataclass(frozen=True)
class SearchNumbers:
    """Numbers of the searches: temperatures, moves of q, choice of points."""

    span: float = number(
        5.0,
        unit="temperatures",
        decides="the temperature: the best 2D + 2 values span so many",
        evidence="derived",
        because=(
            "the log density of draws from a D-dimensional Gaussian has an sd of √(D/2), two in eight dimensions: "
            "five keep q as wide as the data allow, and a colder search takes the first mode"
        ),
    )
    greedy_span: float = number(
        20.0,
        unit="temperatures",
        decides="the same for greedy searches",
        evidence="chosen",
        because="four times as cold: these are wanted to take the nearest mode",
    )
    least_depth: float = number(
        10.0,
        unit="nats",
        decides="from how far below the best on values count as noisy, beside 2D",
        evidence="chosen",
        because="a Gaussian's own draws lie ½D below its top, so 2D + 10 is beyond all that carry mass",
    )
    noise_share: float = number(
        0.1,
        unit="1",
        decides="noise of a value deeper than that, per nat of depth",
        evidence="chosen",
        because="far values give a direction only",
    )
    farthest_drop: float = number(
        1e60,
        unit="nats",
        decides="how deep a value can be",
        evidence="guard",
        because="no fourth power overflows",
    )
    furthest_value: float = number(
        1e6,
        unit="nats",
        decides="how deep a value counts at most",
        evidence="guard",
        because="a wall such as −exp(8x) was 619 nats off without it",
    )
    furthest_depths: float = number(
        3.0,
        unit="depths",
        decides="the same, where values that deep are noisy only",
        evidence="chosen",
        because="three depths down, the noise is already a fifth of the value",
    )
    max_data: float = number(
        350,
        unit="points",
        decides="largest surrogate up to 20 dimensions",
        evidence="chosen",
        because="factoring them costs 3 ms, and all else grows with their square",
    )
    last_data: float = number(
        1000,
        unit="points",
        decides="largest surrogate of a last estimate",
        evidence="chosen",
        because="factoring them takes a tenth of a second, once",
    )
    data_per_coefficient: float = number(
        1.5,
        unit="points per coefficient",
        decides="largest surrogate above 20 dimensions",
        evidence="measured",
        because=(
            "with fewer than one the data do not fix the quadratic; in 25 dimensions the predictive sd fell from "
            "1.2 nats to 0.01 between 1.25 and 1.4 (docs/experiments.md)"
        ),
    )
    data_reach: float = number(
        6.0,
        unit="sds of q",
        decides="beyond √D·2 and this, data are none of the surrogate's",
        evidence="chosen",
        because="q's own points lie within √D + 3",
    )
    last_interactions: float = number(
        2,
        unit="kernels",
        decides="interactions in the surrogate of a last estimate",
        evidence="measured",
        because="error of its integral 0.082 to 0.049 on citation, 0.024 to 0.013 on yacht (docs/experiments.md)",
    )
    learn_growth: float = number(
        1.1,
        unit="1",
        decides="growth of the data after which θ is learnt anew",
        evidence="chosen",
        because="learning takes a score of factorisations, and θ changes slowly",
    )
    relearning_drift: float = number(
        0.25,
        unit="nats per dimension",
        decides="a change of q from which on θ is learnt at once",
        evidence="chosen",
        because="other length-scales may be better there",
    )
    resolution: float = number(
        1e-3,
        unit="temperatures",
        decides="noise of the values",
        evidence="chosen",
        because="far below what any of them is wanted for",
    )
    highest_hope: float = number(
        3.0,
        unit="temperatures",
        decides="how far above the best datum the target of a search may be",
        evidence="chosen",
        because="a search may expect more than a model may say",
    )
    highest_variance: float = number(
        4.0,
        unit="nats²",
        decides="variance in the exponent of an uncertainty, at most",
        evidence="chosen",
        because="beyond, nothing is known, and e^v would be all that counts",
    )
    least_chance: float = number(
        0.1,
        unit="1",
        decides="chance of ℓ > 0 below which the sd of log ℓ grows no more",
        evidence="chosen",
        because="an sd of three nats says already that nothing is known",
    )
    no_chance: float = number(
        1e-10,
        unit="1",
        decides="chance of ℓ > 0 that is divided by, at least",
        evidence="guard",
        because="no division by zero",
    )
    caution: float = number(
        0.5,
        unit="sds",
        decides="subtracted from the surrogate when q is matched",
        evidence="chosen",
        because="q stays where there are data",
    )
    more_caution: float = number(
        4.0,
        unit="1",
        decides="factor of the same where the surrogate extrapolates",
        evidence="chosen",
        because="two sds: what is then left is known",
    )
    ignorant: float = number(
        2.0,
        unit="temperatures",
        decides="mean sd from which on the surrogate extrapolates",
        evidence="chosen",
        because="e² is more than two neighbouring evaluations differ by",
    )
    known: float = number(
        0.5,
        unit="nats",
        decides="mean sd below which the surrogate does not extrapolate, and a search may settle",
        evidence="chosen",
        because="an error of half a nat moves q by a fraction of its width",
    )
    draws: float = number(
        600,
        unit="draws",
        decides="importance draws per matching step up to 20 dimensions",
        evidence="derived",
        because="moments to 1/√600, about 5 %, well inside the inflation of q",
    )
    draws_per_coefficient: float = number(
        6,
        unit="draws per coefficient",
        decides="the same above 20 dimensions",
        evidence="measured",
        because=(
            "matched to an exact Gaussian q ends 0.01 D nats away after 3 steps; with 600 draws 17 nats away in "
            "30 dimensions (docs/experiments.md)"
        ),
    )
    tail: float = number(
        8.0,
        unit="degrees of freedom",
        decides="the matching proposal",
        evidence="chosen",
        because="importance weights stay bounded",
    )
    wider: float = number(
        1.5,
        unit="1",
        decides="scale of the matching proposal, over q's covariance",
        evidence="chosen",
        because="the same",
    )
    least_draws: float = number(
        10.0,
        unit="draws",
        decides="effective draws that moments need, beside a number for each dimension",
        evidence="chosen",
        because="a covariance in D dimensions needs more than D",
    )
    least_draws_per_dim: float = number(
        3.0,
        unit="draws per dimension",
        decides="the same, beside the number above",
        evidence="chosen",
        because="the same",
    )
    covariance_jitter: float = number(
        1e-6,
        unit="1",
        decides="added to the covariance, relative to its mean diagonal",
        evidence="guard",
        because="it can be factored",
    )
    most_steps: float = number(
        15,
        unit="steps",
        decides="importance steps of one match",
        evidence="measured",
        because="q is within 0.01 D nats of an exact Gaussian after 3 of them",
    )
    settled_step: float = number(
        0.02,
        unit="nats per dimension",
        decides="change of q below which the steps end",
        evidence="derived",
        because="the noise of 600 draws",
    )
    most_stretch: float = number(
        3.0,
        unit="1",
        decides="change of q along an axis in one match, at most",
        evidence="chosen",
        because="a trust region: beyond, the surrogate extrapolates",
    )
    no_step: float = number(
        1e-12,
        unit="sds",
        decides="smallest step that is divided by",
        evidence="guard",
        because="no division by zero",
    )
    most_matches: float = number(
        30,
        unit="matches",
        decides="matches to the same data",
        evidence="derived",
        because="q shrinks threefold in each, and priors are rarely 3^30 posteriors wide",
    )
    still_drift: float = number(
        0.05,
        unit="nats per dimension",
        decides="change of q below which it stands still",
        evidence="derived",
        because="twice the importance noise of one match",
    )
    settled_mass: float = number(
        0.1,
        unit="nats",
        decides="growth of the mass found that begins a new settling",
        evidence="chosen",
        because="a tenth of the mass is more than the draws' noise",
    )
    nodes: float = number(
        150,
        unit="draws",
        decides="integration nodes by which the next point of a cold search is chosen",
        evidence="measured",
        because=(
            "to 8 %; with twice as many, and twice the candidates, ten runs were no more exact and a third slower "
            "(docs/experiments.md)"
        ),
    )
    candidates: float = number(
        400,
        unit="draws",
        decides="candidates for the next point, half as many beside the nodes",
        evidence="measured",
        because="the best is in the upper per cent; the same runs",
    )
    far_candidates: float = number(
        3.0,
        unit="1",
        decides="factor by which a quarter of the candidates reach further",
        evidence="chosen",
        because="a q that is too thin in one direction is found out",
    )
    away: float = number(
        0.5,
        unit="sds of q",
        decides="least distance from points under way",
        evidence="chosen",
        because="closer, another would most likely tell the same",
    )
    hollow: float = number(
        6,
        unit="dimensions",
        decides="from which on a promising top is evaluated first",
        evidence="derived",
        because="there fewer than a tenth of a Gaussian's draws come within a nat of its top",
    )
    young_per_dim: float = number(
        5,
        unit="evaluations per dimension",
        decides="own evaluations up to which every point is a match",
        evidence="chosen",
        because="a young q moves with every point",
    )
    match_every: float = number(
        10,
        unit="1",
        decides="share of its evaluations after which an arrived q is matched again, inverse",
        evidence="chosen",
        because="it hardly moves",
    )
    patience_per_dim: float = number(
        8,
        unit="evaluations per dimension",
        decides="evaluations at temperature one after which a search has arrived",
        evidence="chosen",
        because="a rough log ℓ never settles, and is left to the integration",
    )
    patience: float = number(
        30,
        unit="evaluations",
        decides="the same, in all",
        evidence="chosen",
        because="the same",
    )
    limit_per_dim: float = number(
        30,
        unit="evaluations per dimension",
        decides="evaluations after which a later search is given up",
        evidence="chosen",
        because="from the prior to a mode takes 10 to 30 D",
    )
    limit: float = number(
        20,
        unit="evaluations",
        decides="the same, in all",
        evidence="chosen",
        because="the same",
    )
    most_zooms: float = number(
        8,
        unit="times",
        decides="how often a search around a point is narrowed",
        evidence="derived",
        because="twofold to thirtyfold each: from a quarter of the prior to a posterior 1e-8 as wide",
    )
    zoom_depth: float = number(
        4.0,
        unit="nats",
        decides="drop beside 2D from which on q is too wide for the mode it is on",
        evidence="derived",
        because="what chance adds to the median drop in one dimension",
    )
    least_zoom: float = number(
        1e-3,
        unit="1",
        decides="narrowing of the variance at most",
        evidence="chosen",
        because="thirtyfold in width",
    )
    most_zoom: float = number(
        0.25,
        unit="1",
        decides="narrowing of the variance at least",
        evidence="chosen",
        because="twofold in width",
    )
    around_prior_width: float = number(
        0.25,
        unit="prior sds",
        decides="q of a search around a point, at most",
        evidence="chosen",
        because="wide enough to see a slope, narrow enough to stay",
    )
    around_region_width: float = number(
        3.0,
        unit="sds of the nearest region",
        decides="the same",
        evidence="chosen",
        because="modes of one likelihood are often of about one width",
    )
    standstill: float = number(
        0.01,
        unit="nats",
        decides="gain of two steps in a row below which a climb by gradients ends",
        evidence="derived",
        because="½z² is 0.01 a seventh of an sd from the mode",
    )
    wall: float = number(
        1e25,
        unit="nats",
        decides="what −log ℓπ is taken for where ℓ = 0, in a climb by gradients",
        evidence="guard",
        because="a line search turns back, and no difference overflows",
    )
    least_variance: float = number(
        1e-12,
        unit="squared prior sds",
        decides="variance along an axis by which a climb's curvature is measured, at least",
        evidence="guard",
        because="round-off may make an eigenvalue zero or negative, and its root is divided by",
    )
    first_radius: float = number(
        0.25,
        unit="prior sds",
        decides="ball of an ascent's first step",
        evidence="chosen",
        because=(
            "a quarter of the prior: of COBYQA's radii 0.25 and 1 on a predator-prey model, 5 and 2 of 8 ascents left "
            "the broad decoy"
        ),
    )
    widest_radius: float = number(
        2.0,
        unit="prior sds",
        decides="ball of an ascent at most",
        evidence="chosen",
        because="the prior itself",
    )
    small_balls: float = number(
        3,
        unit="balls",
        decides="halvings without a promised gain after which an ascent is over",
        evidence="measured",
        because=(
            "with one, 44 of 60 ascents of bells in 10-D ended within 0.1 nats of the top, since a wrong quadratic may "
            "promise nothing (tests/adaptive/search/test_trust_region.py)"
        ),
    )
    least_radius: float = number(
        1e-3,
        unit="prior sds",
        decides="ball below which an ascent is over",
        evidence="chosen",
        because="a posterior a thousandth as wide as the prior is left to the explorer",
    )
    least_ascent: float = number(
        0.05,
        unit="nats",
        decides="gain that an ascent goes on for",
        evidence="chosen",
        because="a third of an sd from the mode",
    )
    poor_step: float = number(
        0.1,
        unit="1",
        decides="share of the expected gain below which the ball was too wide",
        evidence="reference",
        because="Conn, Scheinberg and Vicente (2009), section 10.2",
    )
    poised: float = number(
        0.1,
        unit="radii",
        decides="spread of the evaluations along a direction below which it is not known",
        evidence="chosen",
        because="a tenth of the ball",
    )
    ascent_reach: float = number(
        3.0,
        unit="radii",
        decides="how far from the best point the quadratic goes",
        evidence="chosen",
        because="the last three steps",
    )
    good_step: float = number(
        0.7,
        unit="1",
        decides="share of the expected gain from which on the ball may grow",
        evidence="reference",
        because="Conn, Scheinberg and Vicente (2009), section 10.2",
    )
    edge: float = number(
        0.9,
        unit="radii",
        decides="length of a step that the ball has bounded",
        evidence="chosen",
        because="nearly all of it",
    )
    min_singular: float = number(
        1e-12,
        unit="of the largest singular value",
        decides="below it a direction of the system for an ascent's quadratic is left out",
        evidence="guard",
        because="with equal points the system is singular, and round-off would be divided by almost nothing",
    )
    min_curvature: float = number(
        1e-100,
        unit="second derivative",
        decides="what the step of an ascent is divided by at least",
        evidence="guard",
        because="a quadratic may be flat along an axis, and zero would be divided by",
    )
    multiplier_margin: float = number(
        1e-12,
        unit="of the largest second derivative, and of one",
        decides="how far above its bound the search for the multiplier μ of the ball begins",
        evidence="guard",
        because="without a slope the bound is the eigenvalue itself, where μ − H is singular",
    )
    unfilled: float = number(
        0.1,
        unit="of the squared radius",
        decides="what of the ball a step leaves before the direction of the largest eigenvalue fills it",
        evidence="guard",
        because="a step that μ determines is as long as the radius to round-off; a slope without a part there is not",
    )


@dataclass(frozen=True)
class KnownNumbers:
    """Numbers that tell a new region from a known one, and how much may be hidden."""

    negligible: float = number(
        7.0,
        unit="nats",
        decides="how far below the sum of all a region is not worth a model",
        evidence="derived",
        because="it holds less than a thousandth of Z",
    )
    inflation: float = number(
        4.0,
        unit="1",
        decides="variance of q over the posterior's, 1 + 4/D",
        evidence="derived",
        because=(
            "√(ℓπ/q) narrows with D(s² − 1), which 1 + 4/D holds fixed: three in two dimensions, wide in the tails"
        ),
    )
    gain_draws: float = number(
        300,
        unit="draws",
        decides="draws of q to compare two surrogates",
        evidence="derived",
        because="a share to 5 %",
    )
    no_novelty: float = number(
        1e-300,
        unit="1",
        decides="share of new mass whose log is taken, at least",
        evidence="guard",
        because="no logarithm of zero",
    )
    unseen_after_one: float = number(
        0.1,
        unit="1",
        decides="mass that may be elsewhere after one search, relative to that found",
        evidence="chosen",
        because="as if one second search in ten found as much again; halved by every search that finds nothing new",
    )
    several_families: float = number(
        3,
        unit="families",
        decides="from which on images count as regions of their own",
        evidence="chosen",
        because="two may be a mode and its neighbour",
    )
    more_of_the_same: float = number(
        0.1,
        unit="1",
        decides="share of mass below which an addition to a known region is no discovery",
        evidence="chosen",
        because="a tenth of a nat",
    )
    lead_ratio: float = number(
        10.0,
        unit="1",
        decides="ℓπ/(Zp) from which on a point is a lead",
        evidence="measured",
        because=(
            "a proposal that follows ℓπ has weights of this size in one draw of a thousand (benchmarks/study_leads.py)"
        ),
    )
    excess: float = number(
        2.0,
        unit="nats",
        decides="excess over the surrogates' predictions, beside their sds",
        evidence="measured",
        because="what a surrogate with an honest sd is wrong by in its tails (benchmarks/study_leads.py)",
    )
    excess_sds: float = number(
        2.0,
        unit="sds",
        decides="the same",
        evidence="chosen",
        because="one in forty by chance",
    )
    excess_max_sd: float = number(
        2.0,
        unit="nats",
        decides="sd of a surrogate that excuses an excess, at most",
        evidence="chosen",
        because="a surrogate that is less sure does not predict",
    )
    flank_depth: float = number(
        10.0,
        unit="nats",
        decides="how far below the best known a point may be a mode's flank",
        evidence="chosen",
        because="a mode may be this much higher than where it was met",
    )
    predicted_heat: float = number(
        0.005,
        unit="temperatures",
        decides="how well a search must be predicted to end early",
        evidence="measured",
        because="several times the noise that surrogates allow themselves (docs/experiments.md)",
    )
    predicted: float = number(
        0.25,
        unit="nats",
        decides="the same",
        evidence="measured",
        because="a part of what tells two modes apart that look like one from afar (docs/experiments.md)",
    )


# -- symmetry/ ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SymmetryNumbers:
    """Numbers of the search for symmetries and their proof."""

    checks: int = number(
        3,
        unit="evaluations",
        decides="how many images must agree, beside that of the best point, before a symmetry counts as proved",
        evidence="chosen",
        because="one image may agree by chance where ℓ hardly depends on a parameter; four in different places do not",
    )
    same: float = number(
        1e-6,
        unit="nats",
        decides="up to what difference log ℓπ at a point and at its image are the same",
        evidence="chosen",
        because="it is far above the round-off of a sum of thousands of terms, and far below what matters to Z",
    )
    same_mass: float = number(
        0.5,
        unit="nats",
        decides="up to what difference in mass two known regions may be images of each other",
        evidence="chosen",
        because="the masses of two images, each by a surrogate of its own data, rarely differ by more",
    )
    match: float = number(
        1.0,
        unit="widths of q, plus the log of the ratio of the widths",
        decides="up to what difference on each axis two regions match",
        evidence="chosen",
        because="q of a region is known to a fraction of its width; evaluations refute what matches by chance",
    )
    clear_sign: float = number(
        0.01,
        unit="product of two correlations",
        decides="from what size on correlations decide the sign of a parameter whose mean is near zero",
        evidence="derived",
        because="it is the product of two correlations of 0.1, and below 0.1 the correlations of q are noise",
    )
    no_match: float = number(
        1e6,
        unit="widths of q",
        decides="what it costs to match parameters of different priors, in place of infinity",
        evidence="guard",
        because="the assignment algorithm needs finite costs; any number far above `match` gives the same result",
    )
    same_point: float = number(
        1e-12,
        unit="relative, plus prior standard deviations",
        decides="up to what distance an image counts as evaluated already",
        evidence="guard",
        because="it is a few thousand times the round-off of a coordinate",
    )
    same_prior: float = number(
        1e-6,
        unit="relative",
        decides="up to what difference the prior is the same after an exchange of parameters",
        evidence="guard",
        because="it is far above the round-off of a quantile function, and far below a difference anybody intends",
    )
    most_images: float = number(
        23,
        unit="images",
        decides="images of one region",
        evidence="derived",
        because="four components can be numbered in 24 ways, and each way costs a model",
    )


# -- models.py: one WSABI model in each region -------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelNumbers:
    """Numbers of the WSABI models of the regions."""

    reach: float = number(
        4.0,
        unit="sds of q",
        decides="radius beside √D within which data belong to a region",
        evidence="derived",
        because="nearly all of q lies inside √D + 3",
    )
    max_data: float = number(
        400,
        unit="points",
        decides="points in a region's WSABI model",
        evidence="chosen",
        because="the price of a fit grows with their cube",
    )
    twin: float = number(
        1e-4,
        unit="sds of q",
        decides="distance below which two points are one to the model",
        evidence="guard",
        because="they spoil its conditioning",
    )
    largest_exponent: float = number(
        700.0,
        unit="nats",
        decides="largest exponent",
        evidence="guard",
        because="exp does not overflow",
    )


# -- check/: check points and the combined estimate --------------------------------------------------------------------


@dataclass(frozen=True)
class CheckNumbers:
    """Numbers of the check points, their density and the combined estimate."""

    # the density of the check points
    prior_share: float = number(
        0.1,
        unit="share of the check points",
        decides="how many check points come from the prior itself",
        evidence="chosen",
        because="π/p is then at most 10 everywhere, so mass outside of every region is seen as well",
    )
    broad_share: float = number(
        0.2,
        unit="share of the draws in a region",
        decides="how many draws come from the Student density of q's mean and covariance",
        evidence="chosen",
        because="the surrogate, which shapes the others, may have the shape wrong",
    )
    uncertainty_share: float = number(
        0.3,
        unit="share of the draws in a region",
        decides="how many draws go where the surrogate is least certain",
        evidence="chosen",
        because="an arm that the surrogate has missed is met there",
    )
    fine_components: int = number(
        32,
        unit="components",
        decides="how many Student components the refined proposal has",
        evidence="chosen",
        because="four times as many as the shape of a region has: a ring is followed to its thickness",
    )
    fine_share: float = number(
        0.5,
        unit="share of the draws",
        decides="how many draws of the refined proposal come from the finer mixture",
        evidence="chosen",
        because="the other half keeps every weight at most twice what it was",
    )
    max_controls: int = number(
        40,
        unit="components",
        decides="how many components of the proposal serve as control variates",
        evidence="chosen",
        because="a thousand draws determine as many coefficients",
    )
    min_singular: float = number(
        1e-10,
        unit="of the largest singular value",
        decides="which combinations of control variates count as zero in the least-squares fit",
        evidence="guard",
        because="two components that nearly agree are one control variate",
    )
    min_left: float = number(
        0.1,
        unit="1 − leverage",
        decides="the most by which a residual is raised that its own point has drawn to itself",
        evidence="guard",
        because="a draw of leverage one has no residual, and must not be divided by zero",
    )
    # how many draws of the proposal integrate a surrogate
    draws: int = number(
        4000,
        unit="draws of the proposal",
        decides="with how many draws a last integral starts and an interim one ends; how many tell the differences "
        "that single check points make; to how many the refined proposal is fitted",
        evidence="chosen",
        because="docs/experiments.md: 16,000 draws take half a second with 500 data, and a quarter of them is "
        "enough where the surrogate is nearly Gaussian",
    )
    draws_factor: int = number(
        4,
        unit="factor",
        decides="an interim integral starts with 1/4 of these draws, and a last one ends with 4 times as many",
        evidence="chosen",
        because="four times as many draws halve the error",
    )
    interim_tolerance: float = number(
        0.4,
        unit="of the least error bar of the surrogate's integral",
        decides="the Monte Carlo error above which an interim integral gets more draws",
        evidence="chosen",
        because="0.4² = 0.16 of the variance, so the error bar grows by a thirteenth",
    )
    final_tolerance: float = number(
        0.25,
        unit="of the least error bar of the surrogate's integral",
        decides="the Monte Carlo error above which a last integral gets more draws",
        evidence="chosen",
        because="0.25² = 1/16 of the variance, so the error bar grows by a thirty-second",
    )
    interim_refinement: float = number(
        math.inf,
        unit="of the least error bar of the surrogate's integral",
        decides="the Monte Carlo error above which an interim integral gets a refined proposal: never",
        evidence="chosen",
        because="interim estimates are made again and again, and a refined proposal doubles their time",
    )
    final_refinement: float = number(
        0.5,
        unit="of the least error bar of the surrogate's integral",
        decides="the Monte Carlo error above which a last integral gets a refined proposal",
        evidence="chosen",
        because="0.5² = ¼ of the variance, so the error bar would grow by an eighth",
    )
    min_growth: float = number(
        1.5,
        unit="factor",
        decides="how much the number of draws grows at least",
        evidence="chosen",
        because="few steps of growth are cheaper than many",
    )
    spare_growth: float = number(
        1.1,
        unit="factor",
        decides="how many draws more than the error asks for are made",
        evidence="chosen",
        because="the error is itself estimated to some per cent",
    )
    max_shortfall: float = number(
        100.0,
        unit="Monte Carlo error over its tolerance",
        decides="the ratio at which the wanted number of draws is computed at most",
        evidence="guard",
        because="10⁴ times as many draws exceed every limit, and no square overflows",
    )
    # whether the integral of the WSABI models can be used
    max_control_noise: float = number(
        0.05,
        unit="of the integral",
        decides="the Monte Carlo error of WSABI's integral above which WSABI is not used",
        evidence="chosen",
        because="what thousands of draws cannot integrate, tens of check points cannot check",
    )
    max_control_gap: float = number(
        0.2,
        unit="of the integral",
        decides="the distance between WSABI's closed form and its Monte Carlo integral above which WSABI is not used",
        evidence="chosen",
        because="the standard error of uneven draws may be too small, and this allows for it",
    )
    max_control_sds: float = number(
        5.0,
        unit="standard errors",
        decides="the same distance in standard errors, added to it",
        evidence="chosen",
        because="both are the same integral, and five standard errors are no chance",
    )
    max_control_nats: float = number(
        5.0,
        unit="nats",
        decides="the distance between WSABI's integral and the surrogate's above which WSABI is not used",
        evidence="chosen",
        because="they are a hundredfold apart, so one of them is useless, and weights of both signs are WSABI's",
    )
    # the error of the models
    integral_error: float = number(
        0.35,
        unit="of the mean predictive sd of log ℓ",
        decides="the relative error of the surrogate's integral",
        evidence="measured",
        because="python -m benchmarks.study_calibration: over 35 runs on random shapes, which no study of coverage "
        "uses, the rms error of the integral was 0.40 of the sd, and 0.05 to 0.37 in the middle two thirds",
    )
    typical_error: float = number(
        0.35,
        unit="of the sd of the models' integral",
        decides="the error of the models when they are weighted against the check points",
        evidence="measured",
        because="python -m benchmarks.study_calibration: over 35 runs on random shapes the ratio was 0.10 to 0.52 in "
        "the middle two thirds, and the combined estimate is as good with half or twice the value",
    )
    contradiction: float = number(
        2.0,
        unit="standard errors of the check points",
        decides="the distance of the check points' estimate above which the variance of the models is raised",
        evidence="measured",
        because="docs/experiments.md: over 158 runs on 21 problems errors were a tenth larger with one in "
        "place of two; no committed script repeats it",
    )
    useful_share: float = number(
        0.5,
        unit="of the models' integral",
        decides="the error above which check points do not excuse the models, or models count as useless",
        evidence="chosen",
        because="of 40 points two that fall on an unknown mode have a mean 1.2 errors away: no chance, but a mode",
    )
    shared_error: float = number(
        0.25,
        unit="of the sd of the residuals",
        decides="the least error of the models' integral",
        evidence="chosen",
        because="residuals of opposite sign partly cancel in the integral",
    )
    max_overconfidence: float = number(
        3.0,
        unit="rms error over predictive sd",
        decides="the ratio above which errors that no check point has met are not raised any further",
        evidence="chosen",
        because="an error that large is met by every check point, and is in the spread of the residuals",
    )
    max_standard_error: float = number(
        1e6,
        unit="predictive sds",
        decides="the size at which a single error is counted at most",
        evidence="guard",
        because="no square overflows",
    )
    unknown_sd: float = number(
        10.0,
        unit="nats",
        decides="the uncertainty of a surrogate that has no mass where the draws are",
        evidence="guard",
        because="e¹⁰ is far more than any error bar that is of use",
    )
    # what the check points say
    min_points: int = number(
        8,
        unit="check points",
        decides="how many check points are needed before they count",
        evidence="chosen",
        because="the standard error of n points is known to 1/√(2(n − 1)), a quarter at n = 8",
    )
    enough_points: int = number(
        16,
        unit="check points",
        decides="how many check points may end a run, or replace the models",
        evidence="chosen",
        because="the standard error of n points is known to 1/√(2(n − 1)), a fifth at n = 16",
    )
    even_share: float = number(
        0.2,
        unit="effective sample size over check points",
        decides="the share below which the standard error of the check points is not believed alone",
        evidence="chosen",
        because="fewer effective points than that are the few largest weights",
    )
    scarce_nats: float = number(
        3.0,
        unit="nats times effective points",
        decides="what is added to the error bar where the effective share is zero, over the effective points",
        evidence="chosen",
        because="as in the rule of three: what n points have not met may be 3/n with a chance of 5 %",
    )
    distance_share: float = number(
        0.5,
        unit="of the nats between models and check points",
        decides="how much of their distance is added to the error bar",
        evidence="chosen",
        because="an sd of half the distance holds both estimates within two sds of either",
    )
    free_distance: float = number(
        1.0,
        unit="nats",
        decides="how much of their distance the standard error already holds",
        evidence="chosen",
        because="a standard error of Z describes log Z as long as it is below Z itself",
    )
    # arithmetic
    unit_shift: float = number(
        50.0,
        unit="nats",
        decides="how far the models may be below the check points before the unit becomes that of the check points",
        evidence="guard",
        because="a ratio of e⁵⁰ leaves no digit of the smaller in a sum, and its square does not overflow",
    )
    max_log_ratio: float = number(
        100.0,
        unit="nats",
        decides="the largest log of a ratio that is exponentiated",
        evidence="guard",
        because="a model that far off is of no use, and no fourth power overflows",
    )
    min_integral: float = number(
        1e-3,
        unit="of the models' integral",
        decides="the least value of an estimate",
        evidence="guard",
        because="a correction to below nothing says only that the models are of no use, and a log needs a number",
    )
    min_variance: float = number(
        1e-300,
        unit="of the models' integral, squared",
        decides="the least variance of the models' integral",
        evidence="guard",
        because="models and points may have met zero likelihood only, and a log needs a number",
    )
    # the tail of weights
    max_tail: float = number(
        0.7,
        unit="Pareto k",
        decides="the shape above which a mean of weights and its standard error are not believed",
        evidence="reference",
        because="Vehtari et al. (2024), Pareto smoothed importance sampling",
    )
    tail_share: float = number(
        0.2,
        unit="of the weights",
        decides="how many of the weights the tail has at most",
        evidence="reference",
        because="Vehtari et al. (2024): M = min(N/5, 3√N)",
    )
    tail_root: float = number(
        3.0,
        unit="of √N weights",
        decides="how many of the weights the tail has at most, for many of them",
        evidence="reference",
        because="Vehtari et al. (2024): M = min(N/5, 3√N)",
    )
    min_tail: int = number(
        5,
        unit="weights",
        decides="how many weights a tail needs, so that 25 weights are needed in all",
        evidence="reference",
        because="Vehtari et al. (2024): no tail of fewer than five weights is fitted",
    )
    tail_quantile: float = number(
        0.25,
        unit="quantile of the excesses",
        decides="where the grid of the fit is centred",
        evidence="reference",
        because="Zhang & Stephens (2009): the first quartile",
    )
    tail_grid: int = number(
        30,
        unit="grid points, beside √M",
        decides="how finely the profile likelihood is integrated",
        evidence="reference",
        because="Vehtari et al. (2024): 30 + √M grid points, in place of 20 + √M of Zhang & Stephens (2009)",
    )
    tail_grid_scale: float = number(
        3.0,
        unit="of the first quartile",
        decides="the scale of the grid of the fit",
        evidence="reference",
        because="Zhang & Stephens (2009)",
    )
    tail_prior: float = number(
        10.0,
        unit="weights",
        decides="how strongly k is pulled to its prior mean",
        evidence="reference",
        because="Vehtari et al. (2024): a weak prior worth ten observations",
    )
    tail_prior_mean: float = number(
        0.5,
        unit="Pareto k",
        decides="to what k is pulled",
        evidence="reference",
        because="Vehtari et al. (2024)",
    )
    exponential_tail: float = number(
        1e-8,
        unit="Pareto k",
        decides="the shape below which the tail is that of an exponential",
        evidence="guard",
        because="(x⁻ᵏ − 1)/k is −log x there, and k = 0 would divide by zero",
    )


# -- bulk/: evaluations by the thousand --------------------------------------------------------------------------------


@dataclass(frozen=True)
class BulkNumbers:
    """Numbers of the bulk phase; the shares and sizes were chosen on gmm, shells and yacht."""

    base_share: float = number(
        0.15,
        unit="share of the draws that are not of the prior",
        decides="how many draws keep to the density of the check points when a density is fitted to the weights",
        evidence="chosen",
        because="its broad and uncertain parts reach where no weighted point has been; the fit has the other draws",
    )
    reaching_share: float = number(
        0.2,
        unit="share of the draws that are not of the prior",
        decides="how many draws come from the mixture fitted to the square root of ℓπ",
        evidence="chosen",
        because="without it the Pareto k of yacht after refitting was 0.9, with it 0.65 to 0.8",
    )
    components: int = number(
        24,
        unit="components",
        decides="how many components a fitted mixture has at most",
        evidence="chosen",
        because="two microseconds per point in 8-D; 12 instead lower the effective share of shells from 0.65 to 0.47",
    )
    points_per_parameter: float = number(
        4.0,
        unit="effective points for each mean and covariance entry of a component",
        decides="how many components the points so far can determine",
        evidence="chosen",
        because="24 components on 45 effective points each, in 8-D, made the weights of yacht ten times as uneven",
    )
    fit_points: int = number(
        16_384,
        unit="points",
        decides="how many points a mixture is fitted to at most",
        evidence="chosen",
        because="about five for each of the parameters of 24 components in ten dimensions; a fit takes half a second",
    )
    block: int = number(
        8192,
        unit="points",
        decides="how many points are handled at a time",
        evidence="guard",
        because="all components at so many points are some tens of megabytes in ten dimensions",
    )
    first_batch: int = number(
        256,
        unit="points per dimension",
        decides="the size of the first batch; each of the next ones that densities are fitted after is twice as large",
        evidence="chosen",
        because="enough for a first mixture of a few components where the effective share is 0.2",
    )
    fitted_batches: int = number(
        4,
        unit="batches",
        decides="after how many batches the density is kept",
        evidence="chosen",
        because="the effective share of gmm and shells rose with each of four fits, by a few per cent with the last",
    )
    growth: float = number(
        4.0,
        unit="1",
        decides="the size of a batch at most, relative to all points so far",
        evidence="chosen",
        because="the error is then looked at before it is half of the last one",
    )
    least_growth: float = number(
        0.25,
        unit="1",
        decides="the size of a batch at least, relative to all points so far",
        evidence="chosen",
        because="a smaller one changes the error by less than the error of the error",
    )
    largest_batch: int = number(
        131_072,
        unit="points",
        decides="the size of a batch at most",
        evidence="guard",
        because="a batch is in memory as a whole, and lost of it is what was under way in a crash",
    )
    spare: float = number(
        1.2,
        unit="1",
        decides="how many more points are drawn than the last error says are needed",
        evidence="chosen",
        because="the error is itself uncertain, and a second small batch costs a fit and a look",
    )
    least_share: float = number(
        0.02,
        unit="effective sample size over points",
        decides="the effective share that is assumed, at least, before the first batch",
        evidence="chosen",
        because="a fit to the first batch raises any lower share",
    )
    unknown_share: float = number(
        0.3,
        unit="effective sample size over points",
        decides="the effective share that is assumed where no check points have shown it",
        evidence="chosen",
        because="about the median before refitting on the suite",
    )
    least_seconds: float = number(
        1e-9,
        unit="seconds per point",
        decides="what a point is taken to cost at least",
        evidence="guard",
        because="a clock may show no time at all, and times are divided by it",
    )
    min_eigenvalue: float = number(
        1e-12,
        unit="of the largest eigenvalue",
        decides="which combinations of control variates count as zero in the normal equations",
        evidence="guard",
        because="two components that nearly agree are one control variate",
    )


# -- algorithm.py, policy.py: what to do next --------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicyNumbers:
    """Numbers that decide what is done next, and when a run has done enough."""

    barren_share: float = number(
        0.3,
        unit="1",
        decides="share of the budget for searches that found nothing new, before there is an estimate",
        evidence="measured",
        because="git history: 0.2 to 0.4 on the suite (docs/experiments.md)",
    )
    returns: float = number(
        5,
        unit="searches",
        decides="searches in a row that come back and end the searching",
        evidence="derived",
        because="a region as easy to find as those known is missed by five of them in 3 % of runs",
    )
    spare: float = number(
        0.05,
        unit="1",
        decides="share of the budget kept to integrate with after the first search",
        evidence="chosen",
        because="a first model needs some points",
    )
    rematch_growth: float = number(
        1.15,
        unit="1",
        decides="growth of the training data at which q is matched anew",
        evidence="chosen",
        because="a rebuild takes as long as fifteen points",
    )
    ask_again_growth: float = number(
        1.05,
        unit="1",
        decides="growth of the data at which it is asked again whether to search",
        evidence="chosen",
        because="an estimate takes as long as several points",
    )
    settled: float = number(
        0.01,
        unit="nats",
        decides="error below which a run is as good as exact, and searches do more good",
        evidence="chosen",
        because="no two models are told apart by it",
    )
    even_draws: float = number(
        0.1,
        unit="1",
        decides="effective share of posterior draws below which a finer proposal is tried",
        evidence="chosen",
        because="a tenth of 4,000 draws is still 400",
    )
    same_values: float = number(
        3,
        unit="values",
        decides="equal values that are no accident",
        evidence="chosen",
        because="continuous likelihoods do not repeat",
    )
    cliff: float = number(
        1e3,
        unit="1",
        decides="times as far below the best as the next: no slope",
        evidence="derived",
        because="points would lie thirty times further from a mode",
    )
    scarce: float = number(
        0.75,
        unit="1",
        decides="infeasible share of the prior from which on parts may be islands",
        evidence="chosen",
        because="a draw of positive likelihood is then the exception",
    )
    floor_below_mass: float = number(
        10.0,
        unit="nats",
        decides="how far below the mass found a floor counts for nothing",
        evidence="derived",
        because="even over all of the prior it would be a twenty-thousandth of it",
    )
    floor_depth: float = number(
        50.0,
        unit="nats",
        decides="how far below the best a floor counts for nothing, while no mass is known",
        evidence="derived",
        because="a mode below it would have to be e⁻¹⁰ of the prior wide in each dimension",
    )
    floor_depth_per_dim: float = number(
        10.0,
        unit="nats per dimension",
        decides="the same",
        evidence="derived",
        because="the same",
    )


# -- unasked: evaluations that the engine has not chosen --------------------------------------------------------------


@dataclass(frozen=True)
class UnaskedNumbers:
    """Numbers of what is made of evaluations that were told without being asked for."""

    most_searches: int = number(
        12,
        unit="searches",
        decides="how many evaluations higher than their neighbours are tried as modes",
        evidence="chosen",
        because="each takes a tenth of a second; a likelihood of more modes needs a run of its own",
    )
    least_gain: float = number(
        3.0,
        unit="nats",
        decides="by how much a further region must raise the log density of evaluations left out",
        evidence="chosen",
        because="a factor of twenty: what is within chance is no region",
    )
    believed: float = number(
        0.25,
        unit="nats",
        decides="the sd of log ℓ below which the surrogates stand alone",
        evidence="measured",
        because="python -m benchmarks.study_told: WSABI of such points was off by up to e^2.4 where it was below",
    )


@dataclass(frozen=True)
class Tuning:
    """All numbers, by section."""

    surrogate: SurrogateNumbers = SurrogateNumbers()
    search: SearchNumbers = SearchNumbers()
    known: KnownNumbers = KnownNumbers()
    symmetry: SymmetryNumbers = SymmetryNumbers()
    models: ModelNumbers = ModelNumbers()
    check: CheckNumbers = CheckNumbers()
    bulk: BulkNumbers = BulkNumbers()
    policy: PolicyNumbers = PolicyNumbers()
    unasked: UnaskedNumbers = UnaskedNumbers()


TUNING = Tuning()


@contextmanager
def tuned(section: str, **values: float) -> Iterator[None]:
    """Other values for some numbers of a section, while the context lasts: for studies and tests.

    Raises
    ------
    TypeError
        If the section has no number of that name.
    """
    before = getattr(TUNING, section)
    object.__setattr__(TUNING, section, replace(before, **values))
    try:
        yield
    finally:
        object.__setattr__(TUNING, section, before)


def table() -> list[Number]:
    """Every number, in the order of the sections."""
    return [
        Number(section.name, one.name, getattr(getattr(TUNING, section.name), one.name), **one.metadata)
        for section in fields(TUNING)
        for one in fields(getattr(TUNING, section.name))
    ]
