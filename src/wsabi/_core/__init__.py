"""What every other package stands on; it imports none of them.

types     the array aliases and the one rule for random state
linalg    the only Cholesky factorisations, triangular solves and row appends
logspace  the only place where likelihoods leave log space
threads   one thread for small matrices
checks    checks of what the user gives, with errors that name the argument
"""

__all__: list[str] = []
