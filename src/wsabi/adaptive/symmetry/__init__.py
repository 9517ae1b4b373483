"""Permutations and sign changes of the parameters that leave ℓπ unchanged.

group  Symmetry: one of them, their group, and which may be worth a try
proof  which images of a region hold mass too, shown by evaluations
"""

__all__: list[str] = []
