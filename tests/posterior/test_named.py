"""Vectors by name: they are arrays in every respect, and names do not follow where they would be wrong."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from wsabi.posterior.named import NamedVector, columns_of

NAMES = ("b[0]", "b[1]", "tau")
GROUPS = (("b", slice(0, 2)), ("tau", 2))


@pytest.fixture
def vector() -> NamedVector:
    return NamedVector([1.0, 2.0, 3.0], NAMES, GROUPS)


def test_entries_by_name(vector):
    assert vector["tau"] == 3.0
    assert isinstance(vector["tau"], float)
    assert vector["b[1]"] == vector[1] == 2.0
    assert_array_equal(vector["b"], [1.0, 2.0])
    assert vector.to_dict()["tau"] == 3.0
    assert list(vector.to_dict()) == ["b", "tau"]
    assert list(NamedVector([1.0], ("x0",)).to_dict()) == ["x0"]


def test_unknown_names_list_the_known_ones(vector):
    with pytest.raises(KeyError, match=r"'tua' is not one of the parameters b, tau, b\[0\], b\[1\]"):
        vector["tua"]
    with pytest.raises(KeyError, match="there is no parameter number 3"):
        columns_of(3, NAMES, GROUPS)
    with pytest.raises(TypeError, match="by its name or its index; got float"):
        columns_of(1.0, NAMES, GROUPS)
    assert columns_of(-1, NAMES, GROUPS) == 2


def test_it_computes_as_an_array_and_gives_plain_ones(vector):
    plain = np.array([1.0, 2.0, 3.0])
    for found, wanted in (
        (vector - plain, plain - plain),
        (2.0 * vector, 2.0 * plain),
        (vector[::-1], plain[::-1]),
        (vector[:2], plain[:2]),
        (np.abs(vector), plain),
        (np.eye(3) @ vector, plain),
        (np.concatenate([vector, vector]), np.tile(plain, 2)),
    ):
        assert type(found) is np.ndarray
        assert_array_equal(found, wanted)
    assert vector.sum() == 6.0
    into = np.zeros(3)
    np.add(vector, 1.0, out=into)
    assert_array_equal(into, plain + 1.0)
    vector += 1.0
    assert_array_equal(vector, plain + 1.0)


def test_copies_keep_their_names(vector):
    for other in (vector.copy(), copy.copy(vector), copy.deepcopy(vector), pickle.loads(pickle.dumps(vector))):
        assert other["tau"] == 3.0
        assert other.names == NAMES
