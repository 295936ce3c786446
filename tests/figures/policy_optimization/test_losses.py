"""The figure of the losses shows the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.policy_optimization import losses


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    rows, shown = ["ppo", "fiberpo", "new"], ["ppo", "cispo", "fiberpo"]
    return xr.Dataset(
        {
            "losses_pull": (
                ("losses_shown", "losses_sign", "losses_ratio"),
                rng.normal(0.0, 2.0, (3, 2, 7)),
            ),
            "losses_share": (("losses_row", "losses_token"), rng.normal(size=(3, 4))),
            "losses_token_ratio": ("losses_token", np.array([1.2, 0.5, 0.9, 1.0])),
            "losses_token_advantage": ("losses_token", np.array([1.0, 1.0, -1.0, -1.0])),
        },
        coords={
            "losses_shown": shown,
            "losses_row": rows,
            "losses_sign": ["A > 0", "A < 0"],
            "losses_ratio": np.linspace(0.4, 1.6, 7),
            "losses_token": ["1.1", "1.2", "2.1", "2.2"],
        },
    )


def test_figure_holds_the_numbers() -> None:
    dataset = _dataset()
    figures = losses.draw(dataset)
    assert list(figures) == ["F5-losses"]
    figure, caption = figures["F5-losses"]
    assert len(caption) > 80
    axes = figure.axes
    panels = [axis for axis in axes if axis.get_title() in ("PPO", "CISPO", "FiberPO")]
    assert len(panels) == 3
    for panel, row in zip(panels, dataset["losses_shown"].values, strict=True):
        expected = dataset["losses_pull"].sel(losses_shown=row, losses_sign="A > 0").values
        drawn = panel.lines[0].get_ydata()
        np.testing.assert_array_equal(drawn, np.clip(expected, -3.0, 3.0))
    (table,) = (axis for axis in axes if axis.images)
    np.testing.assert_array_equal(table.images[0].get_array(), dataset["losses_share"])
    assert [label.get_text() for label in table.get_yticklabels()] == ["PPO", "FiberPO", "new"]
    assert len(table.texts) == 12
    assert table.get_xlabel()
