"""The posterior density of the parameters, from what a run has learnt of the likelihood.

posterior    what people use, one class: moments, quantiles, densities, draws, expectations, by name
form         what it may be made of, behind one interface: one of the next two
closed_form  of a model of ℓ: the measure times a quadratic form in kernels
quadratic    mass, moments and marginals of such a form
weighted     points with weights
distribution distribution functions of one parameter, quantiles, shortest intervals
named        vectors of parameters that know their names
summary      the table of the posterior
importance   weights, and draws from a wider density
reweigh      the evidence under another prior, from the evaluations of a finished run
"""

__all__: list[str] = []
