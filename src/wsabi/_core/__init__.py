"""What every other package stands on; it imports none of them.

types     the array aliases and the one rule for random state
linalg    the only Cholesky factorisations, triangular solves and row appends
logspace  the only place where likelihoods leave log space
threads   one thread for small matrices
edges     the one way to pictures and pages, which are loaded when they are asked for
checks    checks of what the user gives, with errors that name the argument
"""

__all__: list[str] = []
