"""Training of character models: stale samples, control, resuming, and that it improves the reward."""

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from boundlab.long_runs import advance
from boundlab.models import policy_training, policy_updates
from boundlab.models.character_model import CharacterModel, Responses, token_log_probs
from boundlab.models.character_tasks import CharacterTask, bracket_task, task_reward
from boundlab.models.policy_training import (
    PolicyTraining,
    held_out_reward,
    optimize_policy,
    supervised_start,
)

ENTRIES = 14
TRAINING = PolicyTraining(num_prompts=8, group=8, max_delay=2, num_evaluated=64)
# The first five entries share a seed, the others have one each.
DELAYS = np.array([0, 2, 0, 2, 1] + 9 * [0], np.int32)
ALIGNED = np.array([False, False, True, True, False] + 9 * [False])
FRESH = np.array([0, *range(5, ENTRIES)])


@pytest.fixture(scope="module")
def task(key: jax.Array) -> CharacterTask:
    """All prompts of one or two open brackets of two kinds, some held out."""
    return bracket_task(key, 2, 2, 0.3)


@pytest.fixture(scope="module")
def model(task: CharacterTask) -> CharacterModel:
    return CharacterModel(task.vocabulary, 5, width=8, layers=1, heads=2)


@pytest.fixture(scope="module")
def keys(key: jax.Array) -> jax.Array:
    split = np.array(jax.random.key_data(jax.random.split(key, ENTRIES)))
    split[:5] = split[0]
    return jax.random.wrap_key_data(split, impl="threefry2x32")


@pytest.fixture(scope="module")
def started(keys: jax.Array, model: CharacterModel, task: CharacterTask) -> tuple[Any, Any]:
    """Of two models the first, for every entry; losses of both."""
    params, losses = supervised_start(
        keys[4:6], model, task, num_steps=40, batch_size=16, step_size=0.01, chunk_steps=20
    )
    return jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:1], ENTRIES, 0), params), losses


@pytest.fixture(scope="module")
def optimize(keys, model, task, started):
    """Function (updates, …) that runs chunks of two updates from the start."""
    return functools.partial(
        optimize_policy,
        keys,
        model,
        task,
        started[0],
        TRAINING,
        step_size=0.02,
        delay=DELAYS,
        aligned=ALIGNED,
        chunk_updates=2,
    )


@pytest.fixture(scope="module")
def run(optimize):
    """Fifty updates."""
    return optimize(num_updates=50, advance=functools.partial(advance, progress=False))


def test_a_supervised_start_learns_what_isnt_held_out(started, model, task) -> None:
    """Its first loss is that of nearly uniform tokens; only training texts come into it."""
    _, losses = started
    lengths = (task.answers[~task.held_out] != 0).sum(axis=1)
    uniform = lengths.mean() * np.log(task.vocabulary - 1)
    assert losses.shape == (2, 2)
    assert (losses[0] < uniform + 1).all()
    assert (losses[1] < 0.8 * losses[0]).all()


def test_training_improves_the_reward(run, started, keys, model, task) -> None:
    """Entries without delay, each with draws of its own: paired t-test at a rate of 1e-3."""
    records = run.records
    assert {value.shape for value in records} == {(25, ENTRIES)}
    first, last = records.reward[:3, FRESH].mean(axis=0), records.reward[-5:, FRESH].mean(axis=0)
    assert stats.ttest_1samp(last - first, 0, alternative="greater").pvalue < 1e-3
    look = held_out_reward(keys, model, task, run.params, TRAINING.num_evaluated)
    np.testing.assert_array_equal(look, records.held_out_reward[-1])


def test_fresh_samples_have_ratio_one(run) -> None:
    """Up to float32 rounding of two routes; stale ones don't."""
    records = run.records
    fresh = DELAYS == 0
    np.testing.assert_allclose(records.mean_ratio[:, fresh], 1, atol=1e-5)
    assert (records.drift[:, fresh] < 1e-5).all()
    assert (records.clip_fraction[:, fresh] == 0).all()
    assert (records.drift[1:, ~fresh].max(axis=0) > 0.005).all()
    # Of one seed, alike until a gradient is controlled or samples differ.
    assert records.reward[0, 0] == records.reward[0, 2]
    assert (records.controlled[:, ~ALIGNED] == 0).all()
    assert (records.controlled[:, ALIGNED] > 0).any()
    assert (np.abs(records.cosine) <= 1).all()
    assert records.cosine[0, 0] != 0
    assert (records.response_length >= 1).all()


def test_a_killed_training_continues_to_the_same_bits(optimize, run, tmp_path: Path) -> None:
    """And to more updates than were asked for at first."""
    path = tmp_path / "cut.run"

    class CutError(Exception):
        pass

    def inspect(_: Any, chunk: int) -> None:
        if chunk == 2:
            raise CutError

    go = functools.partial(advance, checkpoint=path, progress=False)
    with pytest.raises(CutError):
        optimize(num_updates=6, advance=functools.partial(go, inspect=inspect))
    assert path.exists()
    resumed = optimize(num_updates=8, advance=go)
    head = jax.tree.map(lambda values: values[:4], run.records)
    jax.tree.map(np.testing.assert_array_equal, resumed.records, head)


def test_samples_are_those_of_the_parameters_so_many_updates_ago(
    model: CharacterModel, task: CharacterTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stubs: the parameter, which is log π of every token, counts updates; so log r is its age."""

    def respond(model: Any, task: Any, params: Any, key: Any, asked: Any) -> Any:
        tokens = jnp.ones((len(asked), task.answers.shape[1]), np.int32)
        texts = jnp.concatenate([jnp.asarray(task.prompts)[asked], tokens], axis=1)
        return texts, Responses(tokens, jnp.full(tokens.shape, params), tokens > 0)

    monkeypatch.setattr(policy_updates, "respond", respond)
    monkeypatch.setattr(policy_updates, "unraveller", lambda _: lambda vector: vector[0])
    ones = optax.GradientTransformation(
        lambda _: (), lambda _, state, params=None: (-np.ones(1, np.float32), state)
    )
    monkeypatch.setattr(PolicyTraining, "direction", lambda _: ones)

    def scored(model: Any, params: Any, texts: Any, prompt: int) -> Any:
        width = texts.shape[1] - prompt
        return jnp.full((len(texts), width), params), jnp.zeros((len(texts), width), np.float32)

    monkeypatch.setattr(policy_updates, "token_log_probs", scored)
    training = PolicyTraining("grpo", num_prompts=2, group=2, max_delay=3)
    update = jax.jit(policy_updates.policy_update(model, task, training))
    vector = jnp.zeros(1, np.float32)
    start = policy_updates.PolicyState(
        params=vector,
        history=jnp.zeros((4, 1), np.float32),
        optimizer=(),
        control=training.control().init(vector),
        key=jax.random.key(0),
        update=jnp.int32(0),
        delay=jnp.int32(0),
        aligned=jnp.asarray(False),
        step_size=jnp.float32(1),
    )
    for delay in (0, 1, 3):
        state, ages = start._replace(delay=jnp.int32(delay)), []
        for _ in range(6):
            state, record = update(state)
            ages.append(np.log(float(record.mean_ratio)))
        np.testing.assert_allclose(ages, [min(t, delay) for t in range(6)], atol=1e-5)
        assert float(state.params[0]) == 6


def test_two_updates_by_hand(keys, model, task, started, run) -> None:
    """Gradient ascent on Σ_b A_b Σ_t log π/T_b over the batch, A relative to the group."""
    params = jax.tree.map(lambda leaf: np.asarray(leaf)[0], started[0])
    places = np.flatnonzero(~task.held_out).astype(np.int32)

    @jax.jit
    def draw(params: Any, update: Any) -> Any:
        own = jax.random.fold_in(keys[0], update)
        drawn = jax.random.randint(jax.random.fold_in(own, 0), (8,), 0, len(places), np.int32)
        asked = jnp.repeat(jnp.asarray(places)[drawn], 8)
        noise = jax.random.fold_in(own, 1)
        texts, responses = policy_updates.respond(model, task, params, noise, asked)
        return texts, responses.mask, task_reward(task, asked, responses.tokens)

    @jax.jit
    @jax.grad
    def slope_of(params: Any, texts: Any, weights: Any) -> Any:
        log_prob, _ = token_log_probs(model, params, texts, task.prompts.shape[1])
        return (log_prob * weights).sum()

    norms, rewards = [], []
    for update in range(2):
        texts, mask, reward = map(np.asarray, draw(params, np.int32(update)))
        reward = reward.reshape(8, 8)
        centred = reward - reward.mean(axis=1, keepdims=True)
        advantage = (centred / (reward.std(axis=1, ddof=1, keepdims=True) + 1e-6)).reshape(-1, 1)
        weights = np.where(mask, advantage / mask.sum(axis=1, keepdims=True) / 64, 0)
        slope = slope_of(params, texts, weights.astype(np.float32))
        leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(slope)]
        norms.append(np.sqrt(sum((leaf**2).sum() for leaf in leaves)))
        rewards.append(reward.mean())
        params = jax.tree.map(lambda old, g: old + np.float32(0.02) * np.asarray(g), params, slope)
    assert norms[1] > 0
    np.testing.assert_allclose(run.records.gradient_norm[0, 0], np.mean(norms), rtol=1e-4)
    np.testing.assert_allclose(run.records.reward[0, 0], np.mean(rewards), rtol=1e-6)


def test_bad_input(keys, model, task, started, optimize) -> None:
    for field, value in (
        ("num_prompts", 0),
        ("group", 1.5),
        ("steps", 3),
        ("optimizer", "rmsprop"),
        ("max_delay", -1),
        ("num_evaluated", 0),
        ("gac", (("low", 2.0),)),
    ):
        with pytest.raises(ValueError, match="^low" if field == "gac" else f"^{field}"):
            PolicyTraining(**{field: value})
    with pytest.raises(ValueError, match=r"^name"):
        PolicyTraining("grppo")
    with pytest.raises(ValueError, match=r"^radius"):
        PolicyTraining("grpo", (("radius", 0.1),))
    for name, value in (
        ("num_updates", 0),
        ("num_updates", 3),
        ("step_size", 0.0),
        ("step_size", np.ones(3)),
        ("delay", 3),
        ("delay", 0.5),
        ("aligned", 1),
        ("chunk_updates", 0),
    ):
        with pytest.raises(ValueError, match=f"^{name}"):
            optimize(**{"num_updates": 2, name: value})
    fine = {"num_updates": 10, "step_size": 0.1}
    with pytest.raises(ValueError, match=r"^params"):
        optimize_policy(keys[:2], model, task, started[0], TRAINING, **fine)
    with pytest.raises(ValueError, match=r"^training"):
        optimize_policy(keys, model, task, started[0], "grpo", **fine)
    with pytest.raises(ValueError, match=r"^task"):
        optimize_policy(keys, model, "brackets", started[0], TRAINING, **fine)
    other = CharacterModel(9, 5, width=8)
    with pytest.raises(ValueError, match=r"^model"):
        supervised_start(keys, other, task, num_steps=100)
    with pytest.raises(ValueError, match=r"^model"):
        held_out_reward(keys, None, task, started[0])
    with pytest.raises(ValueError, match=r"^num_evaluated"):
        held_out_reward(keys, model, task, started[0], 0)
    for name, value in (("num_steps", 15), ("batch_size", 0), ("step_size", np.nan)):
        with pytest.raises(ValueError, match=f"^{name}"):
            supervised_start(keys, model, task, **{"num_steps": 10, "chunk_steps": 10, name: value})
    with pytest.raises(ValueError, match=r"^keys"):
        supervised_start(keys[0], model, task, num_steps=100)
    assert policy_training.PolicyTraining is PolicyTraining
