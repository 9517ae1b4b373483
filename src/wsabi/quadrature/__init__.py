"""The paper's method: warped sequential active Bayesian integration of ℓ against a measure with closed forms.

warp         the square-root warp and the moments of ℓ under it
embeddings   integrals of the kernel under the measure
integral     mean and variance of Z
acquisition  where ℓπ is most uncertain
lookahead    which sample lowers the expected variance of Z most
maximise     the maximum of an acquisition
design       the first points
wsabi        the model that grows by one point at a time
"""

__all__: list[str] = []
