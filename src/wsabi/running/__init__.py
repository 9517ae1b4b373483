"""One run of an integrator: the loop that asks, evaluates and tells, and what ends it.

options   the arguments of a run, checked once
progress  what a callback sees
stopping  what ends a run: clock, callback, Ctrl-C, tolerance
faults    what becomes of evaluations that fail
loop      what the loops below share
serial    evaluations in this process
parallel  evaluations on workers
climbing  climbs by gradients on behalf of searches
"""

__all__: list[str] = []
