"""The table of the posterior: as many digits as the sd deserves."""

from __future__ import annotations

import numpy as np
import pytest

from wsabi.posterior.named import NamedVector
from wsabi.posterior.summary import Summary, decimals


@pytest.mark.parametrize(("std", "places"), [(0.0123, 3), (1.2, 1), (34.0, 0), (1e-12, None), (0.0, 3), (np.nan, 3)])
def test_decimals_show_two_digits_of_the_sd(std, places):
    assert decimals(std) == places


def test_rows_of_every_size():
    names = ("small", "large", "tiny", "fixed")
    mean, std = np.array([1.23456, 1e12, 3e-12, 2.0]), np.array([0.0123, 1e10, 1e-12, 0.0])
    vector = [NamedVector(values, names) for values in (mean, std)]
    summary = Summary(names, *vector, (0.5,), mean[None], 812.3)
    assert summary.cells() == [
        ["small", "1.2346", "0.0123", "1.2346"],
        ["large", "1e+12", "1e+10", "1e+12"],
        ["tiny", "3e-12", "1e-12", "3e-12"],
        ["fixed", "2.000", "0.000", "2.000"],
    ]
    lines = repr(summary).splitlines()
    assert len({len(line) for line in lines[:-1]}) == 1  # columns stand under each other
    assert lines[-1] == "effective sample size 812"
