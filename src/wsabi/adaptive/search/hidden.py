"""What may be hidden: the mass in regions that no search has met, as far as the searches can tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from wsabi.adaptive.tuning import TUNING

__all__ = ["hidden_share"]


def hidden_share(gains: Sequence[float | None], kinds: Sequence[tuple[int, float]], n_negligible: int) -> float:
    """Mass in regions not found, relative to that found.

    The largest of three answers. The share that a single search leaves open, halved by every search since the last that
    found something. What the second half of the searches found that the first had not, since as many searches again
    would be expected to find no more than that. And Chao's (1987) lower bound on the number of kinds not met,
    f₁(f₁ − 1)/2(f₂ + 1) from the numbers met once and twice, with one standard error of it added since it is a bound,
    each of the mean mass of those met once; it holds where some regions are much harder to find than others. Places
    that hold next to nothing are kinds too: searches that end each in another place have not seen all there is.

    Parameters
    ----------
    gains : for each search the share of mass that it has gained; None for one that has not ended by itself.
    kinds : times met, and mass relative to all, of each kind of region.
    n_negligible : searches that ended where there is next to nothing.
    """
    ended = [gain for gain in gains if gain is not None]
    barren = len(list(takewhile(lambda gain: gain == 0.0, reversed(ended))))
    alone = TUNING.known.unseen_after_one * 0.5**barren
    if len(ended) < 2:
        return alone
    late = sum(ended[-(len(ended) // 2) :])
    return max(alone, late, _unmet(kinds, n_negligible, len(ended)))


def _unmet(kinds: Sequence[tuple[int, float]], n_negligible: int, n_searches: int) -> float:
    """Chao's bound, with one standard error, times the mean mass of kinds met once; of (times met, mass) of each."""
    met_once = [mass for hits, mass in kinds if hits == 1]
    once, twice = len(met_once) + n_negligible, sum(hits == 2 for hits, _ in kinds)
    if once < 2:
        return 0.0
    ratio = once / (twice + 1)
    hidden = 0.5 * (once - 1) * ratio
    hidden += math.sqrt((twice + 1) * (0.5 * ratio**2 + ratio**3 + ratio**4 / 4))
    # No more of them than searches were made to meet them.
    return min(hidden, n_searches) * float(np.sum(met_once)) / once
