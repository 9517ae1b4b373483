"""Every number of the engine in one place: its value, its unit, what it decides, and the evidence for it.

``TUNING`` holds the numbers in sections, one section for each part of the engine: ``TUNING.search.span``. A study or a
test varies some of them for a while by :func:`tuned`. :func:`table` lists all of them.
"""

from __future__ import annotations

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
            "1.2 nats to 0.01 between 1.25 and 1.4 (docs/adaptive.md)"
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
        because="error of its integral 0.082 to 0.049 on citation, 0.024 to 0.013 on yacht (docs/adaptive.md)",
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
            "30 dimensions (docs/adaptive.md)"
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
            "(docs/adaptive.md)"
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
        because="several times the noise that surrogates allow themselves (docs/adaptive.md)",
    )
    predicted: float = number(
        0.25,
        unit="nats",
        decides="the same",
        evidence="measured",
        because="a part of what tells two modes apart that look like one from afar (docs/adaptive.md)",
    )


# -- symmetry/ ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SymmetryNumbers:
    """Numbers of the search for symmetries and their proof."""

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


# -- algorithm.py, policy.py: what to do next --------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicyNumbers:
    """Numbers that decide what is done next, and when a run has done enough."""

    barren_share: float = number(
        0.3,
        unit="1",
        decides="share of the budget for searches that found nothing new, before there is an estimate",
        evidence="measured",
        because="git history: 0.2 to 0.4 on the suite (docs/adaptive.md)",
    )
    returns: float = number(
        5,
        unit="searches",
        decides="searches in a row that come back and end the searching",
        evidence="derived",
        because="a region as easy to find as those known is missed by five of them in 3 % of runs",
    )
    fewer_returns: float = number(
        3,
        unit="searches",
        decides="the same where they took half of that share",
        evidence="derived",
        because="missed in 12 %",
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


@dataclass(frozen=True)
class Tuning:
    """All numbers, by section."""

    surrogate: SurrogateNumbers = SurrogateNumbers()
    search: SearchNumbers = SearchNumbers()
    known: KnownNumbers = KnownNumbers()
    symmetry: SymmetryNumbers = SymmetryNumbers()
    models: ModelNumbers = ModelNumbers()
    check: CheckNumbers = CheckNumbers()
    policy: PolicyNumbers = PolicyNumbers()


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
