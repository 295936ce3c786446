"""The figures of the published numbers show the dataset's numbers on labelled axes."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from boundlab.figures.fanout import published


@pytest.fixture(scope="module")
def dataset(smoke_of: Callable[..., xr.Dataset]) -> xr.Dataset:
    return smoke_of("fanout", "published_")


def test_figures_hold_the_numbers(dataset: xr.Dataset) -> None:
    drawn = published.draw(dataset)
    assert list(drawn) == ["E1b-published", "E8-selection"]
    panel = drawn["E1b-published"][0].axes[0]
    dots = [line.get_ydata() for line in panel.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(dots[0], [1163, 1182, 1214, 1221, 1244, 1227, 1281])
    assert len(dots) == 5
    assert panel.get_title().startswith("products, MSE: $b^{+0.016}")
    right = drawn["E8-selection"][0].axes[1]
    gains = next(line for line in right.lines if line.get_marker() == "D")
    np.testing.assert_array_equal(gains.get_ydata(), dataset["published_gain"])


def test_axes_are_labelled(dataset: xr.Dataset) -> None:
    for figure, caption in published.draw(dataset).values():
        assert len(caption) > 80
        assert caption.endswith(".")
        assert figure.axes[0].get_ylabel()
        assert figure.axes[-1].get_xlabel()
