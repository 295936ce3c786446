"""One look for every figure, safe for the colour-blind, labelled and without clutter; their order."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# Okabe and Ito's palette, in an order whose first entries differ most in lightness too.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SETTINGS: Any = {
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
}


@contextmanager
def style() -> Iterator[None]:
    """Open matplotlib's settings for one figure; nothing global stays changed."""
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context({**SETTINGS, "axes.prop_cycle": cycler(color=COLORS)}):
        yield


def mean_and_error(samples: Any, dim: str = "seed", width: float = 2.0) -> tuple[Any, Any]:
    """Mean over `dim` and `width` standard errors of it, as arrays."""
    mean = samples.mean(dim)
    error = width * samples.std(dim, ddof=1) / samples.sizes[dim] ** 0.5
    return mean, error


def drawn_in_order(parts: Sequence[Any], dataset: Any) -> dict[str, tuple[Any, str]]:
    """Figures and captions of all `parts` by name; F2-x or E10b-x by number, then letter."""
    drawn: dict[str, tuple[Any, str]] = {}
    for part in parts:
        drawn |= part.draw(dataset)

    def place(name: str) -> tuple[int, str]:
        found = re.match(r"[A-Z](\d+)(\w*)-", name)
        assert found is not None, name
        return int(found[1]), found[2]

    return {name: drawn[name] for name in sorted(drawn, key=place)}
