"""SGD against ridge: where no step size can win, and where the best one beats tuned ridge.

With a teacher drawn from an isotropic prior, ridge at λ = σ²/τ² is the posterior mean, and nothing
has a lower average risk (the Bayes floor). A teacher on the one direction that stands out of a flat
tail is another matter: see `spiked`. Risks R = ‖θ − θ*‖²_M without ½.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from boundlab.analysis.evidence import paired, values_against
from boundlab.analysis.excess_risk import spiked
from boundlab.analysis.excess_risk.config import Config
from boundlab.analysis.excess_risk.problems import graph_pair, problem
from boundlab.claims import Claim, Kind, Source
from boundlab.experiment import Repeat
from boundlab.models.linear_gnn import simulate_ridge, simulate_sgd
from boundlab.theory.excess_risk import ridge as ridge_theory
from boundlab.theory.excess_risk import sgd as sgd_theory

FRACTIONS = (0.1, 0.3, 0.6)  # simulated step sizes, of the stability limit
# Exact instances: windows (N, s) of the average, and random spectra for each.
WINDOWS = ((8, 4), (16, 0), (32, 31), (64, 32), (128, 64), (256, 192))
INSTANCES = 32
EQUIVALENT = 0.99  # ridge's risk is a deterministic equivalent, good to 1 %


def run(config: Config, key: jax.Array, repeat: Repeat) -> xr.Dataset:
    """The Bayes floor, simulated and exact, and the spiked spectrum."""
    graph_key, floor_key, instance_key, spiked_key = (jax.random.fold_in(key, i) for i in range(4))
    parts = (
        _simulated_floor(config, graph_key, floor_key, repeat),
        _exact_floor(instance_key, config.structure_nodes),
        spiked.run(config, spiked_key, repeat),
    )
    dataset = xr.merge(parts, join="exact", combine_attrs="no_conflicts")
    for name in dataset.data_vars:
        dataset[name].attrs = {"long_name": "excess risk R, no ½"} | dataset[name].attrs
    return dataset


def _simulated_floor(
    config: Config, graph_key: jax.Array, key: jax.Array, repeat: Repeat
) -> xr.Dataset:
    """Both algorithms on the same teacher, drawn from N(0, I) anew in every run."""
    graphs = graph_pair(graph_key, config.num_nodes, config.degree)
    items = [problem(name, graph, "laplacian") for name, graph in graphs.items()]
    operators, limits, fractions = (
        jnp.asarray(x, dtype=config.dtype)
        for x in (
            np.stack([item.operator for item in items]),
            [float(sgd_theory.stability_limit(item.mu)) for item in items],
            FRACTIONS,
        )
    )
    noise = config.noise_variance
    count = config.num_samples[0]

    def both(params: dict, run_key: jax.Array) -> dict[str, jax.Array]:
        i = params["comparison_graph"]
        teacher_key, ridge_key, sgd_key = jax.random.split(run_key, 3)
        teacher = jax.random.normal(teacher_key, operators.shape[1:2], operators.dtype)

        def descend(fraction: jax.Array) -> jax.Array:
            step = fraction * limits[i]
            return simulate_sgd(sgd_key, operators[i], teacher, noise**0.5, step, count)

        # λ = σ²/τ² at τ² = 1.
        profile = simulate_ridge(ridge_key, operators[i], teacher, noise**0.5, noise, count)
        return {
            "comparison_floor_ridge": profile.bias + profile.variance,
            "comparison_floor_sgd": jax.vmap(descend)(fractions),
        }

    which = {"comparison_graph": np.arange(len(items))}
    runs = repeat("comparison-floor", both, which, jax.random.split(key, config.num_designs))
    runs = runs.rename(seed="design", comparison_floor_sgd_axis0="comparison_fraction")
    return (
        runs.drop_vars("design")
        .assign_coords(comparison_graph=list(graphs), comparison_fraction=list(FRACTIONS))
        .assign_attrs(comparison_num_samples=count)
    )


def random_instances(key: jax.Array, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Spectra (instances, d) of sum 1, step sizes over the limit and noise variances (instances,)."""
    decay_key, jitter_key, step_key, noise_key = jax.random.split(key, 4)
    decay = np.asarray(jax.random.uniform(decay_key, (INSTANCES, 1), float, 0.0, 2.0))
    jitter = np.asarray(jax.random.normal(jitter_key, (INSTANCES, dim), float))
    mu = np.arange(1.0, dim + 1) ** -decay * np.exp(jitter / 2)
    fractions = np.asarray(jax.random.uniform(step_key, (INSTANCES,), float, 0.02, 0.95))
    noise = 10 ** np.asarray(jax.random.uniform(noise_key, (INSTANCES,), float, -3.0, 1.0))
    return mu / mu.sum(axis=1, keepdims=True), fractions, noise


def _exact_floor(key: jax.Array, dim: int) -> xr.Dataset:
    """Exact risks of SGD over those of ridge at λ = σ² for θ* ~ N(0, I)."""
    prior = np.ones((INSTANCES, dim))
    ratios = []
    for place, (count, start) in enumerate(WINDOWS):
        mu, fractions, noise = random_instances(jax.random.fold_in(key, place), dim)
        steps = fractions * np.asarray(jax.vmap(sgd_theory.stability_limit)(mu))
        descent = jax.vmap(sgd_theory.tail_averaged_risk, in_axes=(0, 0, 0, 0, None, None))
        regression = jax.vmap(ridge_theory.risk, in_axes=(0, 0, 0, 0, None))
        sgd = descent(mu, prior, noise, steps, count, start)
        ridge = regression(mu, prior, noise, noise, count)
        ratios.append(_totals(sgd) / _totals(ridge))
    return xr.Dataset(
        {
            "comparison_floor_ratio": (
                ("comparison_window", "comparison_instance"),
                np.stack(ratios),
                {"long_name": "exact risk of SGD / risk of ridge at λ = σ²/τ²"},
            ),
            "comparison_floor_bound": ((), EQUIVALENT, {"long_name": "1 less ridge's model error"}),
        },
        coords={"comparison_window": [f"N = {count}, s = {start}" for count, start in WINDOWS]},
    )


def _totals(profile: tuple) -> np.ndarray:
    return np.asarray(profile[0]).sum(axis=-1) + np.asarray(profile[1]).sum(axis=-1)


PAGE = "docs/excess_risk.md#bayes-floor"
SGD = "boundlab.theory.excess_risk.sgd.tail_averaged_risk"
RIDGE = "boundlab.theory.excess_risk.ridge.risk"
CLAIMS = (
    Claim(
        id="bayes-floor",
        source=Source("derived", PAGE),
        statement=(
            r"$\theta^*\sim N(0,\tau^2 I)$: ridge at $\lambda=\sigma^2/\tau^2$ beats every SGD"
        ),
        kind=Kind.ORDER,
        check=paired("comparison_floor_ridge", "comparison_floor_sgd", "design"),
        control=spiked.ridge_below,
        control_statement="so does tuned ridge for a fixed teacher on a spike",
        formula=RIDGE,
        test="tests/theory/excess_risk/test_ridge_monte_carlo.py"
        "::test_risk_at_the_prior_ridge_is_the_posterior_variance",
    ),
    Claim(
        id="bayes-floor-exact",
        source=Source("derived", PAGE),
        statement=(r"isotropic prior, any $\mu,\sigma,\gamma,N,s$: $R_{SGD}\geq 0.99\,R_{ridge}$"),
        kind=Kind.LOWER,
        check=values_against((("comparison_floor_ratio", "comparison_floor_bound"),)),
        control=values_against((("comparison_spiked_handicap", "comparison_floor_bound"),)),
        control_statement="the same for a teacher on the head of a spiked spectrum, λ tuned",
        formula=SGD,
        test="tests/theory/excess_risk/test_ridge_tuning.py"
        "::test_isotropic_prior_has_a_known_optimum",
    ),
    *spiked.CLAIMS,
)
