"""Finding the regions of posterior mass.

ascent         climbs to a mode, where there are gradients
explorer       Explorer: a surrogate of log ℓ, and the Gaussian q that follows its tempered posterior
matching       moves q to the moments of the surrogate's posterior
proposing      where an evaluation would tell most
known_regions  KnownRegions: what searches have found, and what they say is hidden
leads          points that no known region explains: where to search next
search         Search: one search under way
"""

__all__: list[str] = []
