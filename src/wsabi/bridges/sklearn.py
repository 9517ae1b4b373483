"""The hyperparameters of a Gaussian process of scikit-learn: ``wsabi.from_sklearn_gp``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wsabi._core.types import Array
from wsabi.bridges.extras import needed
from wsabi.bridges.points import model_with, row_of
from wsabi.model import Model
from wsabi.priors import Uniform, as_prior

__all__ = ["LogMarginalLikelihood", "from_sklearn_gp"]


@dataclass(frozen=True)
class LogMarginalLikelihood:
    """log p(y | X, θ) of a fitted Gaussian process, and its gradient; θ are the logs of its free hyperparameters.

    Parameters
    ----------
    gp : a fitted ``GaussianProcessRegressor`` or ``GaussianProcessClassifier``; it is not changed.
    """

    gp: Any

    def __call__(self, theta: Any) -> float:
        """log p(y | X, θ) at θ (D,)."""
        return float(self.gp.log_marginal_likelihood(row_of(theta)))

    def gradient(self, theta: Any) -> Array:
        """∂ log p(y | X, θ)/∂θ, (D,)."""
        return np.asarray(self.gp.log_marginal_likelihood(row_of(theta), eval_gradient=True)[1])


def from_sklearn_gp(gp: Any, prior: Any = None) -> Model:
    """The model whose parameters are the log hyperparameters θ of a Gaussian process, with the gradient.

    log ℓ(θ) = log p(y | X, θ), by ``gp.log_marginal_likelihood``

    Parameters
    ----------
    gp : ``GaussianProcessRegressor``, or a ``GaussianProcessClassifier`` of two classes, after ``fit``. One with
        ``optimizer=None`` will do: the fitted values are not used.
    prior : of θ, that is of natural logarithms, in the order of ``gp.kernel_.theta``, as :func:`wsabi.integrate` takes
        it. A log-normal length-scale is a normal θ. None is uniform in θ between the bounds of the kernel.

    Notes
    -----
    With ``normalize_y=True`` log Z is that of the normalised targets, as scikit-learn's own value is. That of the
    targets themselves is lower by N log sd(y).

    Examples
    --------
        gp = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
        result = wsabi.integrate(wsabi.from_sklearn_gp(gp))
    """
    module = needed("sklearn.gaussian_process", "sklearn", "wsabi.from_sklearn_gp")
    if not isinstance(gp, module.GaussianProcessRegressor | module.GaussianProcessClassifier):
        raise TypeError(f"gp must be a Gaussian process of scikit-learn; got {type(gp).__name__}.")
    kernel = getattr(gp, "kernel_", None)
    if kernel is None:
        raise ValueError("gp is not fitted: call gp.fit(X, y) first; optimizer=None leaves out what is not needed.")
    names = _names(kernel)
    if len(names) != len(kernel.theta):
        raise ValueError(
            "a GaussianProcessClassifier of more than two classes has several kernels: take them one by one."
        )
    if not names:
        raise ValueError(f"the kernel {kernel} has no free hyperparameter: there is nothing to integrate over.")
    prior = Uniform(kernel.bounds[:, 0], kernel.bounds[:, 1], names=names) if prior is None else as_prior(prior)
    if len(prior.names) != len(names):
        raise ValueError(f"prior has {len(prior.names)} parameters; the kernel has {len(names)}: {', '.join(names)}.")
    likelihood = LogMarginalLikelihood(gp)
    return model_with(likelihood, prior, likelihood.gradient)


def _names(kernel: Any) -> list[str]:
    """Names of the elements of θ: "log_k1__length_scale[0]"."""
    free = [one for one in kernel.hyperparameters if not one.fixed]
    return [
        f"log_{one.name}" if one.n_elements == 1 else f"log_{one.name}[{i}]"
        for one in free
        for i in range(one.n_elements)
    ]
