"""The sampler that bilby finds by its entry point: ``bilby.run_sampler(likelihood, priors, sampler="wsabi")``.

bilby imports this module; nothing of wsabi does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from bilby.core.sampler.base_sampler import NestedSampler
from bilby.core.utils import check_directory_exists_and_if_not_mkdir

import wsabi
from wsabi.bridges.bilby import from_bilby

__all__ = ["Wsabi"]


class Wsabi(NestedSampler):  # type: ignore[misc]
    """wsabi as a sampler of bilby.

    Parameters
    ----------
    budget, tol, max_seconds, settings, on_error, retries, timeout, progress : as of :func:`wsabi.integrate`.
    rng : seed; also by bilby's names for it: ``seed``, ``sampling_seed``, ``random_seed``.
    nsamples : number of draws of the posterior.
    resume : whether the run is kept in a journal, ``<outdir>/<label>_wsabi.db``, from which the same call goes on.
    npool : of ``run_sampler``: number of worker processes. The call must then stand under
        ``if __name__ == "__main__":``.

    Notes
    -----
    ``result.meta_data["wsabi"]`` has the warnings and the error budget, ``result.sampler_output`` the
    :class:`wsabi.Result`. Log-likelihoods of the draws are not known, and are NaN.
    """

    sampler_name = "wsabi"
    sampling_seed_key = "rng"
    default_kwargs = {  # noqa: RUF012  the way of bilby
        **dict.fromkeys(["budget", "tol", "max_seconds", "rng", "settings", "timeout", "progress"]),
        "on_error": "raise",
        "retries": 0,
        "nsamples": 5000,
        "resume": True,
    }

    def _time_likelihood(self, n_evaluations: int = 1) -> float:
        """Time one evaluation: the hundred that bilby takes may be more than the whole run."""
        return float(super()._time_likelihood(n_evaluations=1))

    @property
    def journal(self) -> Path:
        """The file that keeps the run."""
        return Path(self.outdir) / f"{self.label}_wsabi.db"

    @classmethod
    def get_expected_outputs(cls, outdir: str = "outdir", label: str = "label") -> tuple[list[str], list[str]]:
        """Files and folders that a run leaves beside bilby's own."""
        return [str(Path(outdir) / f"{label}_wsabi.db")], []

    def run_sampler(self) -> Any:
        """Run, and fill in bilby's result."""
        options = dict(self.kwargs)
        n, resume = options.pop("nsamples"), options.pop("resume")
        check_directory_exists_and_if_not_mkdir(self.outdir)
        if not resume:
            self.journal.unlink(missing_ok=True)
        model = from_bilby(self.likelihood, self.priors, use_ratio=bool(self.use_ratio))
        workers = self.npool if self.npool is not None and self.npool > 1 else None
        found = wsabi.integrate(model, journal=self.journal if resume else None, workers=workers, **options)
        columns = [found.names.index(key) for key in self.search_parameter_keys]
        result = self.result
        if options["settings"] is not None:
            result.sampler_kwargs = options | {"settings": repr(options["settings"])}  # for bilby to write to its file
        result.sampler_output = found
        result.samples = found.posterior.sample(n, rng=0)[:, columns]
        result.log_likelihood_evaluations = np.full(n, np.nan)
        result.log_evidence, result.log_evidence_err = found.log_z, found.log_z_std
        result.num_likelihood_evaluations = found.n_evals
        result.meta_data["wsabi"] = {
            "version": wsabi.__version__,
            "warnings": list(found.warnings),
            "notes": list(found.notes),
            "error_budget": found.error_budget.parts,
        }
        return result

    def _run_test(self) -> Any:
        self.kwargs |= {"budget": 20, "resume": False}
        return self.run_sampler()

    def write_current_state(self) -> None:
        """Nothing to do: the journal has every evaluation."""
