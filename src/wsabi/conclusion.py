"""What is concluded from a run: its :class:`~wsabi.Result`."""

from __future__ import annotations

from typing import Any

import numpy as np

from wsabi.course import Course
from wsabi.errors import NoMassFound, NumericalError
from wsabi.ledger import stacked
from wsabi.posterior.reweigh import reweigh
from wsabi.report.estimate import NEAR
from wsabi.report.warnings import Remarks
from wsabi.result import Reason, Record, Result
from wsabi.settings import Settings

__all__ = ["result_of"]

MANY_FAILURES = 0.05  # share of the evaluations near the mode from which on failures are worth a warning


def result_of(course: Course, prior: Any, settings: Settings, reason: Reason, prior_fault: str | None) -> Result:
    """The estimate from everything told so far; the course is left as it is, and can go on.

    Parameters
    ----------
    prior_fault : why the prior does not integrate to one, where it does not.

    Raises
    ------
    NoMassFound
        If nothing was told, or nothing but −inf: there is no number to give.
    """
    U, bulk_log_l = course.bulk()
    points = np.concatenate([course.points, course.chart.to_user(U)])
    base, log_l, names = (
        np.concatenate([course.base, U]),
        np.concatenate([course.log_l, bulk_log_l]),
        course.chart.names,
    )
    try:
        found = course.strategy.conclude(course.log_l.copy(), course.noise) if course.n_evals else None
    except NumericalError as error:
        error.state = (points, log_l)
        raise
    if found is None:
        raise _nothing_found(course)
    estimate = found.estimate
    history = tuple(course.history)
    if history and history[-1].n_evals == course.n_evals:  # what follows was done with more care
        history = history[:-1]
    history += (Record(course.n_evals, course.seconds, estimate.log_z, estimate.log_z_std),)
    remarks = Remarks(() if prior_fault is None else (prior_fault,)) + found.remarks
    remarks += _remarks_on_failures(course)
    return Result(
        method="adaptive" if settings.measure == "adaptive" else settings.method,
        log_z=estimate.log_z,
        log_z_std=estimate.log_z_std,
        error_budget=estimate.error,
        model=estimate.model,
        n_evals=course.n_evals,
        seconds=course.seconds,
        converged=reason == "tolerance",
        reason=reason,
        warnings=remarks.warnings,
        notes=(*course.notes, *remarks.notes),
        names=names,
        points=points,
        log_likelihoods=log_l,
        base_points=base,
        history=history,
        fits=found.fits,
        jitter=found.jitter,
        settings=settings,
        posterior=found.posterior,
        certificate=estimate.certificate,
        searches=found.searches,
        batches=found.batches,
        symmetries=found.symmetries,
        prior=prior,
        reweigh=reweigh,
        ledger=course.log.ledger,
    )


def _remarks_on_failures(course: Course) -> Remarks:
    """What to say of evaluations that failed: where they lie near the mass, log Z lacks what is there."""
    n_failed = len(course.log.failed) + course.log.n_bulk_failed
    failed = stacked([one.u for one in course.log.failed if one.u is not None], course.chart.dim)
    if not n_failed:
        return Remarks()
    notes = (f"{n_failed} evaluations failed and were left out; result.ledger has the reasons.",)
    top = course.log_l > np.max(course.log_l) - NEAR
    n_top = int(np.sum(top))
    if n_top < 2 or not len(failed):
        return Remarks(notes=notes)
    spread = np.maximum(np.std(course.base[top], axis=0), 1e-12)
    squares = np.sum(np.square((failed[:, None, :] - course.base[None, :, :]) / spread), axis=2)
    near = int(np.sum(top[np.argmin(squares, axis=1)]))  # failures whose nearest neighbour is near the mode
    if near < 2 or near < MANY_FAILURES * (near + n_top):
        return Remarks(notes=notes)
    warning = (
        f"{near} of {near + n_top} evaluations near the highest likelihood failed: log Z and the posterior rest on "
        "the others, and may be wrong where the likelihood could not be computed. Mend the likelihood there, or "
        "return -math.inf where the model does not exist."
    )
    return Remarks((warning,), notes)


def _nothing_found(course: Course) -> NoMassFound:
    """Why there is no estimate to give."""
    state = (course.points.copy(), course.log_l.copy())
    if not course.n_evals:
        return NoMassFound(
            "nothing was evaluated yet, so there is no estimate to give: evaluate by run(log_likelihood), or tell "
            "values by tell(X, log_l), before result().",
            state,
        )
    return NoMassFound(
        f"none of {course.n_evals} evaluations has a finite log-likelihood: the likelihood is zero wherever it "
        "was tried. Check it at a point that should be feasible, or narrow the prior.",
        state,
    )
