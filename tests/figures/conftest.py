"""Shared by the tests of figures: what a test drew is closed after it."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Close every figure after a test: pyplot keeps them all, and warns of more than twenty."""
    yield
    plt.close("all")
