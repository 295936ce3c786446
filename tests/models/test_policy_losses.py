"""The family of policy losses: a batch worked out elsewhere, micro-batches, options, metrics.

Batches are padded to one shape, and all losses are evaluated on all of them by one program.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab.models.policy_losses import LOSSES, PolicyBatch, policy_loss

# Batch without ties of two terms, with losses and gradients of its 9 tokens by another implementation.
OLD = [[-1.2, -0.7, -2.3, -0.1], [-0.5, -1.9, -0.3, -3.0], [-2.0, -0.4, -1.1, -0.8]]
RHO = [[0.05, -0.31, 0.46, -0.02], [0.26, 0.11, -0.15, 0.0], [-0.61, 0.02, 0.33, -0.09]]
MASK = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]])
ADVANTAGE = np.tile(np.array([[1.0], [-0.5], [0.75]]), (1, 4))
# By row: what isn't a loss's default; a row is named by its loss and a note.
NARROW = {"epsilon_low": 0.05, "epsilon_high": 0.05}
OPTIONS = {
    "dual_clip": {"dual_clip": 1.1},
    "dr_grpo": {"norm": 4},
    "gspo": NARROW,
    "luspo": NARROW,
    "dppo near": {"threshold": 0.05},
    "fiberpo": {"budget_plus": 0.13, "budget_minus": 0.06},
    "fiberpo wide": {"budget_plus": 0.30, "budget_minus": 0.20, "epsilon": 0.11},
    "fiberpo rollback": {"budget_plus": 0.13, "budget_minus": 0.07},
    "fiberpo pessimistic": {"budget_plus": 0.13, "budget_minus": 0.06, "pessimistic": True},
    "fiberpo_domain": {"budgets": ((0.12, 0.12), (0.15, 0.15), (0.2, 0.1)), "epsilon": 0.11},
}
# Row: loss, gradients of sequence 0, 1, 2. luspo by hand: the tokens of gspo summed.
REFERENCE_TABLE = """
ppo: -.3889580907, -.11680790 -.08149411 0 -.10891096, .07205167 .06201545 .04781711, -.04527924 -.08501678
dual_clip: -.4008029883, -.11680790 -.08149411 0 -.10891096, 0 0 .04781711, -.04527924 -.08501678
grpo: -.3439695237, -.08760592 -.06112058 0 -.08168322, .07205167 .06201545 .04781711, -.06791886 -.12752517
dapo: -.3978469796, -.11680790 -.08149411 0 -.10891096, .07205167 .06201545 .04781711, -.04527924 -.08501678
bnpo: -.3889580907, -.11680790 -.08149411 0 -.10891096, .07205167 .06201545 .04781711, -.04527924 -.08501678
dr_grpo: -.2917185680, -.08760592 -.06112058 0 -.08168322, .05403875 .04651159 .03586283, -.03395943 -.06376258
gspo: -.3554606546, -.08716899 -.08716899 -.08716899 -.08716899, .05978273 .05978273 .05978273, -.09306645 -.09306645
luspo: LUSPO, -.34867594 -.34867594 -.34867594 -.34867594, .17934820 .17934820 .17934820, -.18613290 -.18613290
gmpo: -.3502695459, -.08587121 -.08587121 0 -.08587121, .05978273 .05978273 .05978273, -.09306645 -.09306645
sapo: -.8084051760, -.08754838 -.06004765 -.12135843 -.08167522, .07032871 .06178491 .04756230, -.06449762 -.12751216
cispo: .4922895075, -.11680790 -.08149411 -.14222222 -.10891096, .07111111 .06201545 .04781711, -.04527924 -.08501678
vespo: .4916912546, -.08813578 -.08813578 -.08813578 -.08813578, .06570862 .06570862 .06570862, -.09750140 -.09750140
dppo: .5542300100, -.1168079 -.08149411 -.17600822 -.10891096, .07205167 .06201545 .04781711, -.04527924 -.08501678
dppo near: .2518925836, -.1168079 -.08149411 0 -.10891096, .07205167 .06201545 0, -.04527924 -.08501678
dro: .5909805556, -.10833333 -.12833333 -.08555556 -.11222222, .07 .06166667 .04722222, -.11722222 -.08222222
apc: -.3969213838, .08760592 -.06112058 0 -.08168322, 0 -.06201545 .04781711, 0 -.12752517
fiberpo: -.4507493911, -.09481695 0 -.09481695 0, .03998276 .10138114 .06044889, 0 -.13272957
fiberpo wide: -.4200615931, -.15229416 -.01748869 -.06468823 -.10061395, .03953821 .10155366 .04845894, 0 -.14235355
fiberpo rollback: -.4432393854, -.09293945 .37175780 -.09293945 .37175780, .03998276 .10138114 .06044889, 0 -.13272957
fiberpo pessimistic: -.3391500262, -.11324338 -.06112058 -.02563745 -.08168322, .09044714 .08041092 .01839547, -.06791886 -.12752517
fiberpo_domain: -.4147053282, -.17620485 -.04141484 -.07484450 -.13759104, .04574584 .11749792 .02782667, .18059584 -.12479184
"""  # noqa: E501
LUSPO = -(4 * np.exp(0.045) - 3 * 0.5 * np.exp(0.22 / 3) + 2 * 0.75 * np.exp(-0.295)) / 3


def rows_of(table):
    """By row: loss, options, value, gradient."""
    rows = {}
    for line in table.strip().splitlines():
        row, numbers = line.split(": ")
        value, *gradient = numbers.replace("LUSPO", str(LUSPO)).replace(",", "").split()
        slopes = [float(slope) for slope in gradient]
        rows[row] = (row.split()[0], OPTIONS.get(row, {}), float(value), slopes)
    return rows


TABLE = rows_of(REFERENCE_TABLE)
COUNT, LENGTH = 6, 8


def padded(values, fill):
    wide = np.full((COUNT, LENGTH), fill)
    wide[: np.shape(values)[0], : np.shape(values)[1]] = values
    return wide


REFERENCE = PolicyBatch(
    padded(np.add(OLD, RHO), np.nan),
    padded(OLD, np.inf),
    padded(OLD, -np.inf),
    padded(ADVANTAGE, np.nan),
    padded(MASK, 0).astype(bool),
    np.array([0, 0, 1, 5, 5, 2]),
    np.array([0, 0, 0, 1, 1, 3]),
)
RNG = np.random.default_rng(8)
LENGTHS = np.array([8, 5, 0, 3, 7, 1])
NODES = (np.array([4, 4, 0, 1, 1, 2]), np.array([3, 3, 0, 3, 3, 5]))


def drawn(scale):
    old = -RNG.exponential(size=(COUNT, LENGTH))
    moved = old + scale * RNG.normal(size=old.shape)
    mask = np.arange(LENGTH) < LENGTHS[:, None]
    return PolicyBatch(moved, old, old, RNG.normal(size=old.shape), mask, *NODES)


ON_POLICY, RANDOM, LARGER = drawn(0.0), drawn(0.15), drawn(0.5)
ORDER = np.array([3, 5, 0, 2, 1, 4])
PERMUTED = PolicyBatch(*(field[ORDER] for field in LARGER))
BATCHES = {
    "reference": REFERENCE,
    "on policy": ON_POLICY,
    "random": RANDOM,
    "larger": LARGER,
    "permuted": PERMUTED,
    "empty": LARGER._replace(mask=0 * LARGER.mask),
}


def every(batch):
    """Loss, gradient and metrics of each row of the table."""

    def one(name, options):
        loss = policy_loss(name, **options)
        return jax.value_and_grad(lambda x: loss(batch._replace(log_prob=x)), has_aux=True)(
            batch.log_prob
        )

    return {row: one(name, options) for row, (name, options, *_) in TABLE.items()}


@pytest.fixture(scope="module")
def found():
    stacked = jax.tree.map(lambda *fields: np.stack(fields), *BATCHES.values())
    values = jax.tree.map(np.asarray, jax.jit(jax.vmap(every))(stacked))
    return {
        name: jax.tree.map(lambda value, at=at: value[at], values)
        for at, name in enumerate(BATCHES)
    }


@pytest.mark.parametrize("row", TABLE)
def test_reference_batch(found, row):
    (value, _), gradient = found["reference"][row]
    *_, expected, slopes = TABLE[row]
    np.testing.assert_allclose(value, expected, atol=1e-9)
    np.testing.assert_allclose(gradient[:3, :4][MASK > 0], slopes, atol=1e-7)
    np.testing.assert_array_equal(gradient[~REFERENCE.mask], 0.0)


def test_the_table_has_every_loss():
    assert {name for name, *_ in TABLE.values()} == set(LOSSES)


@pytest.mark.parametrize("row", TABLE)
def test_gradient_on_policy(found, row):
    """−μA with μ counted here: 24 tokens in 5 sequences that have any."""
    name = TABLE[row][0]
    tokens = np.maximum(LENGTHS, 1)[:, None]
    weight = {
        "token-mean": 1 / 24,
        "seq-mean-token-mean": 1 / (5 * tokens),
        "seq-mean-token-sum": 1 / 5,
        "seq-mean-token-sum-norm": 1 / (5 * 4),
        None: 1 / (5 * tokens),
    }[LOSSES[name].aggregation]
    advantage = np.where(ON_POLICY.mask, ON_POLICY.advantage, 0.0)
    if name == "gmpo":
        advantage = advantage.sum(axis=1, keepdims=True) / tokens * ON_POLICY.mask
    np.testing.assert_allclose(found["on policy"][row][1], -weight * advantage, atol=1e-16)


@pytest.mark.parametrize("row", TABLE)
def test_order_of_sequences_does_not_matter(found, row):
    (one, metrics), gradient = found["larger"][row]
    (other, others), permuted = found["permuted"][row]
    np.testing.assert_allclose(other, one, rtol=1e-14)
    np.testing.assert_allclose(permuted, gradient[ORDER], rtol=1e-13, atol=1e-17)
    for name, value in metrics.items():
        np.testing.assert_allclose(others[name], value, rtol=1e-13, err_msg=name)


@pytest.mark.parametrize("row", TABLE)
def test_nothing_comes_of_an_empty_batch(found, row):
    (value, metrics), gradient = found["empty"][row]
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)
    assert all(metric == 0.0 for metric in metrics.values())


def test_metrics_by_hand(found):
    ratios = np.exp(np.array(RHO)[MASK > 0])
    size = ratios.sum() ** 2 / (9 * (ratios**2).sum())
    for row in TABLE:
        metrics = found["reference"][row][0][1]
        np.testing.assert_allclose(metrics["mean_ratio"], ratios.mean(), rtol=1e-14)
        np.testing.assert_allclose(metrics["effective_sample_size"], size, rtol=1e-14)
    # Of the 9 tokens: those whose clipped branch is smaller, or that leave their limits.
    shares = {"ppo": 1, "dual_clip": 3, "gspo": 0, "gmpo": 1, "cispo": 2, "dppo near": 2, "sapo": 0}
    shares |= {"dppo": 0, "dro": 0, "vespo": 0, "apc": 9, "fiberpo": 7, "fiberpo wide": 4}
    for row, count in shares.items():
        np.testing.assert_allclose(
            found["reference"][row][0][1]["clip_fraction"], count / 9, rtol=1e-14, err_msg=row
        )


def test_regimes_by_hand(found):
    """Row 0: s⁺ passes, s⁻ is rolled back; row 1: both pass; row 2: s⁻ = .305 is zeroed."""
    metrics = found["reference"]["fiberpo rollback"][0][1]
    expected = {"plus_passed": 3, "plus_rolled_back": 0, "plus_zeroed": 0}
    expected |= {"minus_passed": 1, "minus_rolled_back": 1, "minus_zeroed": 1}
    for name, count in expected.items():
        np.testing.assert_allclose(metrics[name], count / 3, rtol=1e-15, err_msg=name)


SPLIT = [row for row in TABLE if row in LOSSES and LOSSES[row].splits]
MODES = ("token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean")


def test_the_pessimistic_form_does_not_always_lead_back():
    """One token of eight at r = .615, A = 1: rollback of the others pushes it on, a slope of -1 each."""
    options = {"budget_plus": 0.13, "budget_minus": 0.06, "epsilon": 0.04, "pessimistic": True}
    loss, old = policy_loss("fiberpo", **options), np.full((1, 8), -1.0)

    def gain(first: jax.Array) -> jax.Array:
        log_prob = jnp.concatenate([first[None], jnp.full(7, -1.0)])[None]
        return -loss(PolicyBatch(log_prob, old, None, np.ones((1, 8)), np.ones((1, 8))))[0]

    aggregate = -np.log(0.615) / 8
    others = np.exp(-(9 * 0.06 - 8 * aggregate) + 0.04)
    assert 0.06 < aggregate < 0.0675
    assert others < 1.0
    slope = jax.grad(gain)(jnp.asarray(-1.0 + np.log(0.615)))
    np.testing.assert_allclose(8 * slope, 0.615 - 7 * others, rtol=1e-10)
    assert slope < 0.0


def test_micro_batches_add_up(found):
    """Halves of the batch, each with the whole batch's count as its denominator."""
    first, second = (PolicyBatch(*(f[half] for f in RANDOM)) for half in (slice(3), slice(3, None)))
    halves = jax.tree.map(lambda *fields: np.stack(fields), first, second)

    def one(name, options, batch):
        loss = policy_loss(name, **options)
        return jax.value_and_grad(lambda x: loss(batch._replace(log_prob=x))[0])(batch.log_prob)

    def parts(batch, tokens, sequences):
        losses = {}
        for row in SPLIT:
            count = tokens if LOSSES[row].aggregation == "token-mean" else sequences
            losses[row] = one(row, {**TABLE[row][1], "denominator": count}, batch)
        return losses

    halves = halves._replace(group_id=None, domain_id=None)
    split = jax.jit(jax.vmap(parts, in_axes=(0, None, None)))(halves, 24.0, np.float32(5.0))
    for row, (values, gradients) in split.items():
        (value, _), gradient = found["random"][row]
        np.testing.assert_allclose(np.sum(values), value, rtol=1e-14, err_msg=row)
        np.testing.assert_allclose(
            np.concatenate(gradients), gradient, rtol=1e-12, atol=1e-17, err_msg=row
        )


def test_micro_batches_of_every_aggregation_add_up():
    first, second = (PolicyBatch(*(f[half] for f in RANDOM)) for half in (slice(3), slice(3, None)))
    loss = {
        mode: (
            policy_loss("ppo", aggregation=mode),
            policy_loss("ppo", aggregation=mode, denominator=d),
        )
        for mode, d in zip(MODES, (1, 5, 5, 5), strict=True)
    }
    whole = jax.jit(lambda batch: {mode: fn(batch)[0] for mode, (fn, _) in loss.items()})(RANDOM)
    part = jax.jit(lambda batch: {mode: fn(batch)[0] for mode, (_, fn) in loss.items()})
    one, other = part(first), part(second)
    for mode in MODES:
        np.testing.assert_allclose(one[mode] + other[mode], whole[mode], rtol=1e-14, err_msg=mode)


def test_options_may_be_traced_and_swept():
    def value(epsilon, budget):
        fiber = policy_loss("fiberpo", budget_plus=budget, budget_minus=budget, epsilon=epsilon)
        domain = policy_loss("fiberpo_domain", budgets=((budget, 0.1),) * 3, epsilon=epsilon)
        clip = policy_loss("ppo", epsilon_low=epsilon, epsilon_high=epsilon)
        return [loss(LARGER)[0] for loss in (fiber, domain, clip)]

    limits = np.array([0.02, 0.3], np.float32)
    swept = jax.jit(jax.vmap(value))(limits, limits)
    np.testing.assert_allclose(
        swept[2][1], policy_loss("ppo", epsilon_low=0.3, epsilon_high=0.3)(LARGER)[0], rtol=1e-7
    )
    assert all(abs(float(loss[0]) - float(loss[1])) > 1e-3 for loss in swept)


def test_one_trace_serves_all_batches():
    traces = []
    loss = policy_loss("fiberpo")

    @jax.jit
    def step(batch):
        traces.append(1)
        return loss(batch)[0]

    for batch in (RANDOM, LARGER):
        step(jax.tree.map(jnp.asarray, batch))
    assert len(traces) == 1


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize("option", ["aggregation", "norm", "denominator", "behavior_weight"])
def test_only_none_is_none(option):
    others = [[], (), {}, "", False, np.array(["a", "b"]), np.ones(2), np.ma.masked, 10**400, "x"]
    if option not in ("norm", "denominator"):
        others.append(3)
    for value in (0, *others):
        for name in ("dr_grpo", "gmpo", "fiberpo_domain"):
            with pytest.raises(ValueError, match=rf"^{option}: "):
                policy_loss(name, **{option: value})


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    "value", [np.array("a"), np.array(None), [1.0, [2.0]], 10**400, np.ma.masked, None, True]
)
def test_options_of_other_types_are_named(value):
    for name, option in (("ppo", "epsilon_low"), ("apc", "radius"), ("dual_clip", "dual_clip")):
        with pytest.raises(ValueError, match=rf"^{option}: "):
            policy_loss(name, **{option: value})
    if value is not None:
        with pytest.raises(ValueError, match=r"^behavior_high: "):
            policy_loss("ppo", behavior_weight="tis", behavior_high=value)
    for budgets in (value, (value,) * 3, ((value, 0.1),) * 3):
        with pytest.raises(ValueError, match=r"^budgets: "):
            policy_loss("fiberpo_domain", budgets=budgets)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "name", "options"),
    [
        ("name", "fiber", {}),
        ("name", None, {}),
        ("epsilon", "ppo", {"epsilon": 0.2}),
        ("budgets", "fiberpo", {"budgets": ((0.1, 0.1),) * 3}),
        ("epsilon_low", "ppo", {"epsilon_low": 0.0}),
        ("epsilon_high", "gmpo", {"epsilon_high": -0.1}),
        ("epsilon_high", "ppo", {"epsilon_high": np.ones(2)}),
        ("epsilon_high", "ppo", {"epsilon_high": None}),
        ("epsilon", "fiberpo", {"epsilon": np.nan}),
        ("dual_clip", "dual_clip", {"dual_clip": 1.0}),
        ("temperature_positive", "sapo", {"temperature_positive": 0}),
        ("threshold", "dppo", {"threshold": -0.1}),
        ("beta", "dro", {"beta": -1.0}),
        ("radius", "apc", {"radius": -0.1}),
        ("budget_plus", "fiberpo", {"budget_plus": -0.1}),
        ("pessimistic", "fiberpo", {"pessimistic": 1}),
        ("pessimistic", "fiberpo_domain", {"pessimistic": True}),
        ("budgets", "fiberpo_domain", {"budgets": ((0.1, 0.1),) * 2}),
        ("budgets", "fiberpo_domain", {"budgets": ((0.1, 0.1), (0.1, -0.1), (0.1, 0.1))}),
        ("budgets", "fiberpo_domain", {"budgets": ((0.1, 0.1), 0.1, (0.1, 0.1))}),
        ("budgets", "fiberpo_domain", {"budgets": np.ones((2, 3))}),
        ("aggregation", "ppo", {"aggregation": "mean"}),
        ("aggregation", "gmpo", {"aggregation": "token-mean"}),
        ("norm", "gmpo", {"norm": 4}),
        ("norm", "ppo", {"norm": 4}),
        ("norm", "dr_grpo", {"norm": -4}),
        ("denominator", "ppo", {"denominator": 0}),
        ("denominator", "bnpo", {"denominator": 9}),
        ("denominator", "fiberpo_domain", {"denominator": 9}),
        ("denominator", "ppo", {"denominator": 9, "behavior_weight": "m2po"}),
        ("behavior_weight", "ppo", {"behavior_weight": "tos"}),
        ("behavior_threshold", "ppo", {"behavior_weight": "tis", "behavior_threshold": 0.1}),
        ("behavior_low", "ppo", {"behavior_low": 0.1}),
    ],
)
def test_bad_options_are_named(named, name, options):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        policy_loss(name, **options)


def test_unknown_names_get_the_nearest():
    with pytest.raises(ValueError, match=r"nearest: .*fiberpo"):
        policy_loss("fibrepo")
    with pytest.raises(ValueError, match=r"ppo takes epsilon_low, epsilon_high, aggregation"):
        policy_loss("ppo", clip=0.2)


def test_missing_ids_are_named():
    with pytest.raises(ValueError, match=r"^group_id: "):
        policy_loss("fiberpo_domain")(RANDOM._replace(group_id=None))
    with pytest.raises(ValueError, match=r"^domain_id: "):
        jax.jit(policy_loss("fiberpo_domain"))(RANDOM._replace(domain_id=None))


def test_traced_ids_that_do_not_fit_give_nan():
    """As the gate does, and where a group lies in two domains, which only the loss can see."""
    loss, old = policy_loss("fiberpo_domain"), np.full((4, 3), -1.0)
    mask = np.ones((4, 3))
    mask[3] = 0
    total = jax.jit(
        jax.value_and_grad(lambda x, g, d: loss(PolicyBatch(x, old, None, mask, mask, g, d))[0])
    )
    groups, domains = np.array([0, 0, 1, 1]), np.array([0, 0, 2, 3])
    assert np.isfinite(total(old, groups, domains)[0])
    wrong = [(groups + 3, domains), (groups - 1, domains), (groups, domains + 2)]
    for pair in (*wrong, (groups, domains - 1), (groups, np.array([0, 1, 2, 2]))):
        value, gradient = total(old, *pair)
        assert np.isnan(value)
        assert np.isnan(gradient[:3]).all()
