"""emukit: WSABI-L and vanilla Bayesian quadrature, as in its tutorial, with 200 evaluations.

Its integrand is ℓ itself, divided by the largest ℓ of the first points, since there is no log in its interface.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.peers.task import Answer, Peer, Task
from wsabi._core.types import Array

EVALUATIONS = 200

PEER = Peer(
    kind="quadrature",
    variants={"emukit WSABI-L": {"warped": True}, "emukit vanilla BQ": {"warped": False}},
    requirements=("emukit==0.5.1", "GPy==1.15.0"),
    package="emukit",
    imports=(
        "GPy",
        "emukit.model_wrappers.gpy_quadrature_wrappers",
        "emukit.quadrature.loop",
        "emukit.quadrature.measures",
        "emukit.quadrature.methods",
    ),
)


def run(task: Task, warped: bool) -> Answer:
    import GPy
    from emukit.model_wrappers.gpy_quadrature_wrappers import create_emukit_model_from_gpy_model
    from emukit.quadrature.loop import VanillaBayesianQuadratureLoop, WSABILLoop
    from emukit.quadrature.measures import GaussianMeasure
    from emukit.quadrature.methods import WSABIL, VanillaBayesianQuadrature

    np.random.seed(task.seed)  # noqa: NPY002, emukit and GPy draw from NumPy's global state
    measure = GaussianMeasure(mean=np.zeros(task.dim), variance=1.0)
    X = measure.sample(5 * task.dim)
    log_l = task.batch(task.from_white(X))
    top = float(log_l.max())

    def integrand(Z: Array) -> Array:
        return np.exp(task.batch(task.from_white(Z)) - top)[:, None]

    Y = np.exp(log_l - top)[:, None]
    gpy_model = GPy.models.GPRegression(
        X=X, Y=Y, kernel=GPy.kern.RBF(input_dim=task.dim, lengthscale=1.0, variance=1.0)
    )
    base_gp = create_emukit_model_from_gpy_model(gpy_model=gpy_model, measure=measure)
    model = WSABIL(base_gp=base_gp, X=X, Y=Y) if warped else VanillaBayesianQuadrature(base_gp=base_gp, X=X, Y=Y)
    loop = WSABILLoop(model=model) if warped else VanillaBayesianQuadratureLoop(model=model)

    def estimate() -> tuple[float, float | None]:
        mean, variance = model.integrate()
        log_z = top + math.log(mean) if mean > 0.0 else -math.inf
        std = math.sqrt(variance) / mean if variance is not None and variance > 0.0 and mean > 0.0 else None
        return log_z, std  # WSABI-L gives no variance

    def noted(_loop: object, _state: object) -> None:
        if task.n_evals % 5 == 0:
            task.note(*estimate())

    loop.iteration_end_event.append(noted)
    loop.run_loop(user_function=integrand, stopping_condition=EVALUATIONS - len(X))
    return Answer(*estimate())
