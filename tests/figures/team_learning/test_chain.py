"""The figures of chains and search show the dataset's numbers on labelled axes."""

import numpy as np
import xarray as xr

from boundlab.figures.team_learning import chain


def _dataset() -> xr.Dataset:
    rng = np.random.default_rng(0)
    dims = {
        "chain_agents": ("ratio", "ratio_theory", "ratio_square"),
        "chain_case": ("amplification", "mean_stage"),
        "chain_place": ("amplification_single",),
        "chain_stage": ("attrition_theory", "attrition_linear"),
        "chain_team": ("response_theory", "response_own_floor", "response_best", "response_own"),
        "chain_fine": ("joint_curve", "tokens_curve_process", "tokens_curve_outcome"),
        "chain_trajectories": ("tokens_outcome_separate",),
    }
    sizes = {"chain_agents": 4, "chain_case": 5, "chain_place": 3, "chain_stage": 3}
    sizes |= {"chain_team": 2, "chain_fine": 6, "chain_trajectories": 3, "chain_explored": 2}
    kinds = [f"{a}_{b}" for a in ("samples", "union") for b in ("dependent", "independent")]
    dims["chain_agents"] += tuple(kinds)
    variables = {
        f"chain_{name}": (dim, rng.random(sizes[dim]) + 0.1)
        for dim, names in dims.items()
        for name in names
    }
    simulated = {
        "attrition": "chain_stage",
        "response": "chain_team",
        "phases_failure": "chain_team",
        "joint": "chain_explored",
        "local": "chain_explored",
        "tokens_process": "chain_trajectories",
        "tokens_outcome": "chain_trajectories",
    }
    variables |= {
        f"chain_{name}": (("chain_seed", dim), rng.random((5, sizes[dim])))
        for name, dim in simulated.items()
    }
    variables |= {"chain_local_theory": ((), 0.3), "chain_phases_failure_allowed": ((), 0.125)}
    coords = {
        "chain_agents": [1, 2, 3, 9],
        "chain_place": [1, 2, 3],
        "chain_stage": [1, 2, 3],
        "chain_team": ["A=4, K=3", "A=2, K=5"],
        "chain_fine": np.geomspace(1, 100, 6),
        "chain_trajectories": [5, 10, 20],
        "chain_explored": [5, 10],
    }
    return xr.Dataset(variables, coords=coords)


def _drawn(axis: object) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata()) for line in axis.lines]  # type: ignore[attr-defined]


def test_figures_hold_the_numbers() -> None:
    dataset = _dataset()
    figures = chain.draw(dataset)
    assert list(figures) == ["F7-chain", "F7b-search"]
    first, caption = figures["F7-chain"]
    assert len(caption) > 80
    assert "at K = 9" in caption
    held = {
        0: ("ratio", "ratio_theory", "ratio_square"),
        1: ("samples_dependent", "union_independent"),
        2: ("amplification", "amplification_single"),
        3: ("attrition_theory", "attrition_linear"),
    }
    for place, names in held.items():
        drawn = _drawn(first.axes[place])
        for name in names:
            assert any(np.array_equal(y, dataset[f"chain_{name}"]) for y in drawn), name
    second, caption = figures["F7b-search"]
    assert "0.125 allowed" in caption
    drawn = _drawn(second.axes[0])
    mean = dataset["chain_response"].mean("chain_seed")
    assert any(np.array_equal(y, mean) for y in drawn)
    held = {1: ("joint_curve",), 2: ("tokens_curve_process", "tokens_outcome_separate")}
    for place, names in held.items():
        drawn = _drawn(second.axes[place])
        for name in names:
            assert any(np.array_equal(y, dataset[f"chain_{name}"]) for y in drawn), name
    for figure in (first, second):
        assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)
