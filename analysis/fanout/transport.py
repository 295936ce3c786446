"""Transport distances: the published Δ(β, b), what it says of generalisation, and a bound that is valid.

Four pieces, each in a file of its own: Δ from explicit rows, Δ beside measured gaps, laws of sampled
means in Wasserstein-2 distance, and a PAC-Bayes bound.
"""

import jax
import xarray as xr

from boundlab.analysis.datasets import describe
from boundlab.analysis.fanout.config import Config
from boundlab.analysis.fanout.transport_bound import bound
from boundlab.analysis.fanout.transport_claims import CLAIMS as CLAIMS
from boundlab.analysis.fanout.transport_delta import delta
from boundlab.analysis.fanout.transport_gaps import gaps
from boundlab.analysis.fanout.transport_laws import laws
from boundlab.experiment import Repeat


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """Δ, gaps, laws and the bound as one dataset."""
    parts = [
        delta(jax.random.fold_in(key, 0)),
        gaps(config, jax.random.fold_in(key, 1), repeat),
        laws(config, jax.random.fold_in(key, 2), repeat),
        bound(config, jax.random.fold_in(key, 3)),
    ]
    return describe(xr.merge(parts), "1")
