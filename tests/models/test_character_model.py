"""The character model against a plain NumPy transformer; sampling against its own law."""

import jax
import numpy as np
import pytest
from scipy import stats

from boundlab.models.character_model import (
    CharacterModel,
    draw_responses,
    init_model,
    token_log_probs,
)
from boundlab.models.character_tasks import END, PAD

MODEL = CharacterModel(vocabulary=5, length=6, width=8, layers=2, heads=2)
PROMPT, TOKENS, ROWS = 3, 3, 256


@pytest.fixture(scope="module")
def params(key: jax.Array) -> dict:
    """Of the model's shapes, but large enough that laws are far from uniform."""
    shapes = jax.eval_shape(lambda: init_model(key, MODEL))
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: rng.normal(0, 0.7, leaf.shape).astype(np.float32), shapes)


@pytest.fixture(scope="module")
def prompts() -> np.ndarray:
    """Random prompts of 1 to 3 tokens."""
    rng = np.random.default_rng(1)
    rows = rng.integers(2, 5, (ROWS, PROMPT)).astype(np.int32)
    rows[np.arange(PROMPT)[None] < rng.integers(0, PROMPT, ROWS)[:, None]] = PAD
    return rows


@pytest.fixture(scope="module")
def scored():
    return jax.jit(lambda params, tokens, t: token_log_probs(MODEL, params, tokens, PROMPT, t))


@pytest.fixture(scope="module")
def drawn():
    def draw(params, key, prompts, temperature, greedy=False):
        return draw_responses(MODEL, params, key, prompts, TOKENS, temperature, greedy=greedy)

    return jax.jit(draw, static_argnames="greedy")


def plain(params: dict, text: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Law of the token after each place of one text without padding at its places, in float64."""
    weights = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)["params"]
    places = np.flatnonzero(text != PAD)
    x = weights["embedding"][text[places]] + weights["places"][places]

    def normed(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6) * scale

    for layer in range(MODEL.layers):
        own = weights[f"layer_{layer}"]
        parts = np.split(normed(x, own["scale_1"]) @ own["attention_in"], 3, axis=1)
        query, keys, values = (part.reshape(len(places), 2, 4) for part in parts)
        read = np.zeros((len(places), 2, 4))
        for i in range(len(places)):
            for head in range(2):
                score = np.array([query[i, head] @ keys[j, head] / 2 for j in range(i + 1)])
                weight = np.exp(score - score.max())
                read[i, head] = weight / weight.sum() @ values[: i + 1, head]
        x = x + read.reshape(len(places), 8) @ own["attention_out"]
        inner = np.maximum(normed(x, own["scale_2"]) @ own["perceptron_in"], 0)
        x = x + inner @ own["perceptron_out"]
    logits = normed(x, weights["scale"]) @ weights["embedding"].T / temperature
    logits[:, PAD] = -np.inf
    law = np.exp(logits - logits.max(axis=1, keepdims=True))
    return law / law.sum(axis=1, keepdims=True)


def test_log_probs_are_those_of_a_plain_transformer(params, prompts, scored) -> None:
    rng = np.random.default_rng(2)
    texts = np.concatenate([prompts, rng.integers(1, 5, (ROWS, TOKENS))], axis=1).astype(np.int32)
    for temperature in (1.0, 0.6):
        log_prob, entropy = scored(params, texts, temperature)
        assert log_prob.dtype == entropy.dtype == np.float32
        for row in range(0, ROWS, 16):
            law = plain(params, texts[row], temperature)[-TOKENS - 1 : -1]
            expected = np.log(law[np.arange(TOKENS), texts[row, PROMPT:]])
            np.testing.assert_allclose(log_prob[row], expected, atol=2e-5)
            inner = stats.entropy(law, axis=1)
            np.testing.assert_allclose(entropy[row], inner, atol=2e-5)


def test_later_tokens_and_padding_change_nothing(params, prompts, scored) -> None:
    rng = np.random.default_rng(3)
    texts = np.concatenate([prompts, rng.integers(1, 5, (ROWS, TOKENS))], axis=1).astype(np.int32)
    base, _ = scored(params, texts, 1.0)
    for place in range(PROMPT + 1, PROMPT + TOKENS):
        changed = texts.copy()
        changed[:, place:] = rng.integers(0, 5, (ROWS, PROMPT + TOKENS - place))
        other, _ = scored(params, changed, 1.0)
        before = place - PROMPT
        np.testing.assert_array_equal(other[:, :before], base[:, :before])
    # What is read at padded places has no weight: neither token PAD's embedding nor their positions.
    short = prompts[:, 1] == PAD
    weights = params["params"]
    embedding, places = weights["embedding"].copy(), weights["places"].copy()
    embedding[PAD] += 3
    places[:2] -= 5
    moved = {"params": {**weights, "embedding": embedding, "places": places}}
    other, _ = scored(moved, texts, 1.0)
    assert short.any()
    np.testing.assert_allclose(other[short], base[short], rtol=0, atol=1e-6)
    assert not np.allclose(other[~short], base[~short])


def test_samples_carry_the_log_probs_of_one_pass(params, prompts, drawn, scored, key) -> None:
    for temperature in (1.0, 0.6):
        found = drawn(params, key, prompts, temperature)
        tokens, mask = np.asarray(found.tokens), np.asarray(found.mask)
        texts = np.concatenate([prompts, tokens], axis=1)
        log_prob, _ = scored(params, texts, temperature)
        assert found.log_prob.dtype == np.float32
        gap = np.where(mask, np.asarray(log_prob) - np.asarray(found.log_prob), 0)
        np.testing.assert_allclose(gap, 0, atol=1e-5)
        assert (np.asarray(found.log_prob)[~mask] == 0).all()
        for row, kept in zip(tokens, mask, strict=True):
            ends = np.flatnonzero(row == END)
            length = ends[0] + 1 if len(ends) else TOKENS
            np.testing.assert_array_equal(kept, np.arange(TOKENS) < length)
            assert (row[length:] == PAD).all()
            assert (row[:length] != PAD).all()
    assert (tokens == END).any()


def test_samples_follow_the_law(params, drawn, key) -> None:
    """Frequencies of whole responses to one prompt, χ² at a rate of 1e-4."""
    prompt = np.tile(np.array([[PAD, 3, 2]], np.int32), (ROWS, 1))
    draws = [
        np.asarray(drawn(params, jax.random.fold_in(key, i), prompt, 1.0).tokens) for i in range(16)
    ]
    first = np.concatenate(draws)
    law = {}

    def extend(text: tuple[int, ...], chance: float) -> None:
        if len(text) == TOKENS or END in text:
            law[text + (PAD,) * (TOKENS - len(text))] = chance
            return
        following = plain(params, np.array([PAD, 3, 2, *text]))[-1]
        for token in range(1, 5):
            extend((*text, token), chance * following[token])

    extend((), 1.0)
    assert abs(sum(law.values()) - 1) < 1e-12
    expected = np.array(list(law.values())) * len(first)
    found = np.array([(first == np.array(text)).all(axis=1).sum() for text in law])
    assert found.sum() == len(first)
    rare = expected < 8
    found = np.append(found[~rare], found[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    assert len(found) > 8
    assert stats.chisquare(found, expected).pvalue > 1e-4


def test_greedy_takes_the_likeliest(params, prompts, drawn, key) -> None:
    found = drawn(params, key, prompts, 1.0, greedy=True)
    tokens, mask = np.asarray(found.tokens), np.asarray(found.mask)
    for row in range(0, ROWS, 8):
        text = prompts[row]
        for token, kept in zip(tokens[row], mask[row], strict=True):
            if kept:
                assert token == plain(params, text)[-1].argmax()
                text = np.append(text, token)


def test_bad_input(params, prompts, key) -> None:
    for field, value in (("vocabulary", 2), ("length", 1), ("width", 0), ("heads", 3)):
        with pytest.raises(ValueError, match=f"^{field}"):
            CharacterModel(**{"vocabulary": 5, "length": 6, "width": 8, field: value})
    with pytest.raises(ValueError, match=r"^key"):
        init_model(0, MODEL)
    for model in (None, "model"):
        with pytest.raises(ValueError, match=r"^model"):
            init_model(key, model)
    texts = np.ones((2, 6), np.int32)
    for tokens in (texts[0], texts + 4, texts - 2, texts + 0.5, np.ones((2, 7), np.int32)):
        with pytest.raises(ValueError, match=r"^tokens"):
            token_log_probs(MODEL, params, tokens, PROMPT)
    for prompt in (0, 6, 1.5):
        with pytest.raises(ValueError, match=r"^prompt_length"):
            token_log_probs(MODEL, params, texts, prompt)
    for temperature in (0.0, np.nan, -1.0):
        with pytest.raises(ValueError, match=r"^temperature"):
            token_log_probs(MODEL, params, texts, PROMPT, temperature)
        with pytest.raises(ValueError, match=r"^temperature"):
            draw_responses(MODEL, params, key, prompts, TOKENS, temperature)
    for count in (0, 4):
        with pytest.raises(ValueError, match=r"^num_tokens"):
            draw_responses(MODEL, params, key, prompts, count)
    for wrong in (prompts[0], prompts + 4, prompts + 0.5):
        with pytest.raises(ValueError, match=r"^prompts"):
            draw_responses(MODEL, params, key, wrong, TOKENS)
    with pytest.raises(ValueError, match=r"^key"):
        draw_responses(MODEL, params, 3, prompts, TOKENS)
