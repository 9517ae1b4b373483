"""Results as HTML, without matplotlib and without anything from elsewhere.

notebook  what a notebook shows of a result
svg       lines, bands, bars and points drawn by hand
"""

__all__: list[str] = []
