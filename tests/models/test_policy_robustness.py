"""What must hold for every policy loss, whatever the batch holds: padding, far ratios, empty sequences.

One program a loss maps value and gradient over variants of a batch. A behaviour weight multiplies the
loss of tokens, or for GMPO of sequences, whatever these are: each kind is met by one loss of tokens and
by GMPO, not by every loss.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.behavior_weights import BEHAVIOR_WEIGHTS
from boundlab.models.policy_losses import LOSSES, PolicyBatch, policy_loss

NAMES = tuple(LOSSES)
RNG = np.random.default_rng(23)
B, T = 6, 5
GROUPS, DOMAINS = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 0, 1, 1])
MASK = np.arange(T) < np.array([5, 3, 4, 1, 2, 5])[:, None]


def single(values):
    """Rounded to what float32 holds, so that both types can be given the same numbers."""
    return np.asarray(values).astype(np.float32).astype(np.float64)


OLD = single(-1.0 - RNG.exponential(size=(B, T)))
SCALE = np.where(RNG.random((B, T)) < 0.5, 0.05, 0.7)
BASE = PolicyBatch(
    log_prob=single(OLD + SCALE * RNG.standard_normal((B, T))),
    log_prob_old=OLD,
    log_prob_behavior=single(OLD + 0.4 * RNG.standard_normal((B, T))),
    advantage=single(RNG.standard_normal((B, T))),
    mask=MASK,
    group_id=GROUPS,
    domain_id=DOMAINS,
)
# No row stays in its place, and groups stay together or apart as before.
ORDER = np.array([3, 5, 0, 4, 2, 1])


def padded():
    """Not-a-numbers, infinities and large numbers wherever the mask is 0."""
    bad = np.resize([np.nan, np.inf, -np.inf, 1e30, -1e4, 0.0, 7.0], (B, T))
    arrays = {
        name: np.where(MASK, getattr(BASE, name), np.roll(bad, i))
        for i, name in enumerate(BASE._fields[:4])
    }
    return BASE._replace(**arrays)


def far():
    """Log-ratios of ±1e4 beside small ones, of both policies."""
    step = np.where(RNG.random((B, T)) < 0.5, 1e4, 0.1) * np.where(RNG.random((B, T)) < 0.5, 1, -1)
    return BASE._replace(log_prob=OLD + step, log_prob_behavior=OLD + np.roll(step, 2))


VARIANTS = {
    "base": BASE,
    "padded": padded(),
    "permuted": BASE._replace(**{n: getattr(BASE, n)[ORDER] for n in BASE._fields}),
    "empty rows": BASE._replace(mask=MASK & (np.arange(B) % 3 != 1)[:, None]),
    "nothing": padded()._replace(mask=np.zeros((B, T), bool)),
    "far": far(),
    "far up": BASE._replace(log_prob=OLD + 1e4, log_prob_behavior=OLD - 1e4),
    "far down": BASE._replace(log_prob=OLD - 1e4, log_prob_behavior=OLD + 1e4),
    "equal rewards": BASE._replace(advantage=np.zeros((B, T))),
}


def spoiled(field, value):
    """One token, (0, 3), that holds what isn't finite."""
    values = getattr(BASE, field).copy()
    values[0, 3] = value
    return BASE._replace(**{field: values})


SPOILED = {
    f"{field} {value}": spoiled(field, value)
    for field, value in [*((f, np.nan) for f in BASE._fields[:4]), ("log_prob", -np.inf)]
}
SPOILED["advantage inf"] = spoiled("advantage", np.inf)
# Both −inf have a difference that is NaN, and both 1e308 and its negative one that overflows.
SPOILED["both -inf"] = spoiled("log_prob", -np.inf)._replace(
    log_prob_old=spoiled("log_prob_old", -np.inf).log_prob_old
)
SPOILED["overflow"] = spoiled("log_prob", -1.5e308)._replace(
    log_prob_old=spoiled("log_prob_old", 1.5e308).log_prob_old
)
ALL = VARIANTS | SPOILED
STACKED = jax.tree.map(lambda *leaves: np.stack(leaves), *ALL.values())


KINDS = {
    "ppo": ("tis",),
    "gspo": ("icepop",),
    "cispo": ("sequence_mask",),
    "dppo": ("opsm",),
    "apc": ("decoupled",),
    "sapo": ("m2po",),
    "gmpo": BEHAVIOR_WEIGHTS,
}


def value_and_gradient(name, batch, **options):
    def loss(log_prob):
        return policy_loss(name, **options)(batch._replace(log_prob=log_prob))

    return jax.value_and_grad(loss, has_aux=True)(batch.log_prob)


@functools.cache
def results(name):
    """Of each kind: values (variants,), metrics, gradients (variants, B, T)."""
    kinds = (None, *KINDS.get(name, ()))

    def each(batch):
        return [value_and_gradient(name, batch, behavior_weight=kind) for kind in kinds]

    found = jax.jit(jax.vmap(each))(STACKED)
    found = jax.tree.map(np.asarray, found)
    return {
        kind: {
            variant: (value[i], {k: m[i] for k, m in metrics.items()}, gradient[i])
            for i, variant in enumerate(ALL)
        }
        for kind, ((value, metrics), gradient) in zip(kinds, found, strict=True)
    }


@pytest.mark.parametrize("name", NAMES)
def test_loss_on_any_batch(name):
    for kind, found in results(name).items():
        value, metrics, gradient = found["base"]
        assert np.abs(gradient[MASK]).max() > 0, kind
        assert not gradient[~MASK].any(), kind
        # Padding: the same bits.
        chex.assert_trees_all_equal(found["padded"], found["base"])
        # Another order of the sequences: to rounding.
        other, moved_metrics, moved = found["permuted"]
        np.testing.assert_allclose(other, value, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(moved, gradient[ORDER], rtol=1e-12, atol=1e-15)
        chex.assert_trees_all_close(moved_metrics, metrics, rtol=1e-12)
        # Sequences without a token have no gradient; without any token there is no loss.
        assert not found["empty rows"][2][1::3].any()
        for part in jax.tree.leaves(found["nothing"]):
            assert not np.any(part), kind
        for variant in VARIANTS:
            for part in jax.tree.leaves(found[variant]):
                assert np.isfinite(part).all(), (kind, variant)
        # A group of equal rewards moves nothing, but that DRO's penalty pulls back.
        if name != "dro":
            assert not found["equal rewards"][2].any(), kind


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_finite_at_a_token_comes_through(name):
    """Whatever a gate or a weight compares: loss, all metrics, and the gradient of the token."""
    for kind, found in results(name).items():
        for variant in SPOILED:
            value, metrics, gradient = found[variant]
            assert np.isnan(value), (kind, variant)
            assert all(np.isnan(metric) for metric in metrics.values()), (kind, variant)
            assert np.isnan(gradient[0, 3]), (kind, variant)
            assert not gradient[~MASK].any(), (kind, variant)


def test_what_is_not_finite_is_refused_by_name():
    """Where it is concrete; FiberPO's gate would name the log-ratio, which isn't an argument."""
    for variant, batch in SPOILED.items():
        field = "log_prob" if " " not in variant or "both" in variant else variant.split()[0]
        for name in ("ppo", "fiberpo", "fiberpo_domain"):
            with pytest.raises(ValueError, match=rf"^{field}: got .* at \(0, 3\)"):
                policy_loss(name)(batch)


@pytest.mark.parametrize("name", ["ppo", "gmpo", "fiberpo_domain"])
def test_empty_sequences_count_for_nothing(name):
    kept = np.arange(B) % 3 != 1
    small = BASE._replace(**{n: getattr(BASE, n)[kept] for n in BASE._fields})
    value = jax.jit(lambda batch: policy_loss(name)(batch)[0])(small)
    np.testing.assert_allclose(value, results(name)[None]["empty rows"][0], rtol=1e-13)


SWEPT = {
    "ppo": "epsilon_low",
    "dual_clip": "dual_clip",
    "gspo": "epsilon_high",
    "gmpo": "epsilon_high",
    "cispo": "epsilon_high",
    "sapo": "temperature_negative",
    "dppo": "threshold",
    "dro": "beta",
    "apc": "radius",
    "fiberpo": "epsilon",
    "fiberpo_domain": "budgets",
}


def test_options_are_swept_under_vmap():
    """Traced options give what concrete ones give, and other values other losses."""

    @jax.jit
    @jax.vmap
    def losses(factor):
        found = {}
        for name, option in SWEPT.items():
            value = jnp.asarray(LOSSES[name].options[option], float) * factor
            found[name] = policy_loss(name, **{option: value})(BASE)[0]
        return found

    for name, found in losses(np.array([1.0, 0.1, 0.5, 3.0])).items():
        np.testing.assert_allclose(found[0], results(name)[None]["base"][0], rtol=1e-13)
        assert len(set(np.asarray(found).tolist())) > 1, name


def test_traced_once():
    """Other numbers, batches and options of the same shape take no further compilation."""

    @jax.jit
    @chex.assert_max_traces(n=1)
    def step(batch, epsilon, high):
        return value_and_gradient("ppo", batch, epsilon_high=epsilon, behavior_weight="tis",
                                  behavior_high=high)  # fmt: skip

    for i, batch in enumerate([BASE, padded(), far()]):
        step(batch, 0.1 + 0.1 * i, np.float64(2 + i))


def test_inside_checkpoint_and_scan():
    """Two halves, added up by a scan over micro-batches with the count of the whole."""
    whole = BASE._replace(group_id=None, domain_id=None)
    halves = jax.tree.map(lambda x: x.reshape(2, B // 2, T), whole)
    loss = policy_loss("apc", denominator=B)

    @jax.checkpoint
    def add(total, half):
        return total + loss(half)[0], None

    @jax.jit
    @jax.value_and_grad
    def accumulated(log_prob):
        parts = halves._replace(log_prob=log_prob.reshape(2, B // 2, T))
        return jax.lax.scan(add, jnp.zeros(()), parts)[0]

    value, gradient = accumulated(BASE.log_prob)
    expected = results("apc")[None]["base"]
    np.testing.assert_allclose(value, expected[0], rtol=1e-13)
    np.testing.assert_allclose(gradient, expected[2], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["ppo", "fiberpo"])
def test_narrow_types(name):
    """float32 to its digits; bfloat16 keeps eight bits of log π, an error of .004 at log π = −2.

    A gate may decide otherwise on such a token, whose gradient is another one then: most aren't.
    """
    run = jax.jit(lambda batch: value_and_gradient(name, batch))
    exact, _, expected = results(name)[None]["base"]
    scale = np.abs(expected).max()
    for dtype, tolerance in ((np.float32, 2e-5), (jnp.bfloat16, 0.03)):
        narrow = {n: jnp.asarray(getattr(BASE, n), dtype) for n in BASE._fields[:4]}
        (value, metrics), gradient = run(BASE._replace(**narrow))
        assert gradient.dtype == dtype
        for number in (value, *metrics.values()):
            assert number.dtype == np.float32
            assert np.isfinite(number)
        np.testing.assert_allclose(value, exact, atol=tolerance)
        error = np.abs(np.asarray(gradient).astype(np.float64) - expected) / scale
        assert (error.max() if dtype == np.float32 else np.quantile(error[MASK], 0.8)) <= tolerance
