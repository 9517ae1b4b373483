"""Finding the regions of posterior mass.

variance_reduction  how much variance of ℓπ an evaluation would take away
anneal              Explorer: finds one region of posterior mass by annealing a surrogate
ascent              climbs to a mode, where there are gradients
leads               points that no known region explains: where to search next
known_regions       KnownRegions: what searches have found, and what they say is hidden
search              Search: one search under way
"""

__all__: list[str] = []
