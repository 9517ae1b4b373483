"""Results as HTML, without matplotlib and without anything from elsewhere.

page      one result as one HTML file
charts    its pictures
notebook  what a notebook shows of a result
svg       lines, bands, bars and points drawn by hand
"""

__all__: list[str] = []
