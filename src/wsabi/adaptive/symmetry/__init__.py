"""Permutations and sign changes of the parameters that leave ℓπ unchanged.

group       Symmetry: one of them, the group of several, and what connects two regions
candidates  Candidates: which symmetries to test, as declared and as the names of parameters suggest
proof       ImageTests: which of them evaluations prove or refute
"""

__all__: list[str] = []
