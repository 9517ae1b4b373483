"""The posterior density of the parameters, from what a run has learnt of the likelihood.

closed_form  of a model of ℓ: the measure times a quadratic form in kernels
quadratic    mass, moments and marginals of such a form
weighted     points with weights
importance   weights, and draws from a wider density
reweigh      the evidence under another prior, from the evaluations of a finished run
"""

__all__: list[str] = []
