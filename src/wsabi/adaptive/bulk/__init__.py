"""Bulk: evaluations by the thousand, where the likelihood is cheap.

Points are drawn in batches from the density of the check points, and weighted by the likelihood itself. No model learns
of them, so a point costs microseconds beside its likelihood, and the estimate that rests on them is unbiased whatever
the models are.

- :mod:`population`: points of several densities in turn, with the weights of their mixture, and the next density.
- :mod:`tally`: the mean of the weights with control variates, and its standard error, from sums.
- :mod:`sample`: the bulk of a run so far, batch by batch, and what it says of Z.
- :mod:`planning`: when bulk begins, how large the next batch is, and when there are enough.
"""

__all__: list[str] = []
