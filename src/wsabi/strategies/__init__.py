"""Strategies: algorithms that choose points and estimate Z, behind one interface.

protocol  what the integrator asks of a strategy
plain     WSABI against the prior, as in the paper
adaptive  the default engine
"""

__all__: list[str] = []
