"""A small causal transformer over characters: log-probabilities in one pass, and sampling in `jit`.

Texts are those of `character_tasks`: P characters of prompt, padded on the left, then up to R of a
response. π(token | what stands before it) is the softmax of logits/temperature over all tokens but `PAD`.
Everything is float32, whatever the caller's setting.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.models.character_tasks import END, PAD
from boundlab.precision import is_traced
from boundlab.typing import Count, Scalar

DTYPE = np.float32
# Of a logit or a score that must not count: its exponential is 0 and its gradient too.
_NEVER = np.float32(-1e9)
_normal = nn.initializers.normal(0.02, DTYPE)
_fan_in = nn.initializers.variance_scaling(1.0, "fan_in", "normal", dtype=DTYPE)


class Responses(NamedTuple):
    """Responses drawn from a model."""

    tokens: Int[Array, "B R"]
    """`END` closes a response, `PAD` stands after it; one that didn't end in time has no `END`."""
    log_prob: Float[Array, "B R"]
    """log π of each token, natural logarithm, as it was drawn; 0 where masked."""
    mask: Bool[Array, "B R"]
    """Which positions are tokens, `END` included."""


class _Layer(nn.Module):
    """Attention over all earlier places, then a perceptron; both on normed values, added to them."""

    width: int
    heads: int

    @nn.compact
    def __call__(
        self,
        x: Float[Array, "B n width"],
        cache: Float[Array, "2 B L width"],
        allowed: Bool[Array, "B n L"],
        start: Any,
    ) -> tuple[Float[Array, "B n width"], Float[Array, "2 B L width"]]:
        width, heads = self.width, self.heads

        def dense(name: str, rows: int, columns: int) -> Float[Array, "rows columns"]:
            return self.param(name, _fan_in, (rows, columns), DTYPE)

        normed = _normed(x, self.param("scale_1", nn.initializers.ones, (width,), DTYPE))
        mixed = normed @ dense("attention_in", width, 3 * width)
        query, new = mixed[..., :width], jnp.stack(jnp.split(mixed[..., width:], 2, axis=-1))
        zero = jnp.zeros((), np.int32)
        cache = jax.lax.dynamic_update_slice(cache, new, (zero, zero, start, zero))

        def split(values: Float[Array, "B m width"]) -> Float[Array, "B m heads size"]:
            return values.reshape(*values.shape[:2], heads, width // heads)

        scale = np.float32((width // heads) ** -0.5)
        scores = jnp.einsum("bnhs,blhs->bhnl", split(query) * scale, split(cache[0]))
        weights = jax.nn.softmax(jnp.where(allowed[:, None], scores, _NEVER), axis=-1)
        read = jnp.einsum("bhnl,blhs->bnhs", weights, split(cache[1])).reshape(x.shape)
        x = x + read @ dense("attention_out", width, width)
        normed = _normed(x, self.param("scale_2", nn.initializers.ones, (width,), DTYPE))
        inner = jax.nn.relu(normed @ dense("perceptron_in", width, 4 * width))
        return x + inner @ dense("perceptron_out", 4 * width, width), cache


class CharacterModel(nn.Module):
    """Causal transformer with learned positions; the input's embedding is the output's too.

    Called with `tokens` (B, n) that stand at places `start`, …, `start` + n − 1 and the cache of what
    stands before, it returns the logits (B, n, V) of the token after each, and the cache with them in.
    """

    vocabulary: int
    """Number V of tokens, `PAD` (0) and `END` (1) among them."""
    length: int
    """Most places of a text, P + R."""
    width: int = 32
    layers: int = 2
    heads: int = 2

    def __post_init__(self) -> None:
        for name, least in (("vocabulary", 3), ("length", 2)):
            check_integer(name, getattr(self, name), least)
        for name in ("width", "layers", "heads"):
            check_integer(name, getattr(self, name), 1)
        if self.width % self.heads:
            raise fail("heads", self.heads, f"a divisor of width = {self.width}")
        super().__post_init__()

    @nn.compact
    def __call__(
        self, tokens: Int[Array, "B n"], start: Any, cache: Any
    ) -> tuple[Float[Array, "B n V"], Any]:
        embedding = self.param("embedding", _normal, (self.vocabulary, self.width), DTYPE)
        places = self.param("places", _normal, (self.length, self.width), DTYPE)
        read, present = cache
        rows = tokens.shape[1]
        start = jnp.asarray(start, np.int32)
        zero = jnp.zeros((), np.int32)
        present = jax.lax.dynamic_update_slice(present, tokens != PAD, (zero, start))
        x = embedding[tokens] + jax.lax.dynamic_slice_in_dim(places, start, rows)[None]
        own = start + jnp.arange(rows, dtype=np.int32)
        past = jnp.arange(present.shape[1], dtype=np.int32)[None, :] <= own[:, None]
        allowed = past[None] & present[:, None, :]
        grown = []
        for layer in range(self.layers):
            x, kept = _Layer(self.width, self.heads, name=f"layer_{layer}")(
                x, read[layer], allowed, start
            )
            grown.append(kept)
        x = _normed(x, self.param("scale", nn.initializers.ones, (self.width,), DTYPE))
        return x @ embedding.T, (jnp.stack(grown), present)


def init_model(key: Any, model: Any) -> Any:
    """Initial parameters, a pytree of float32 arrays.

    Raises `ValueError` naming the argument.
    """
    check_key("key", key)
    _check_model(model)
    tokens = jnp.zeros((1, 1), np.int32)
    return model.init(key, tokens, np.int32(0), _empty_cache(model, 1, 1))


def token_log_probs(
    model: Any, params: Any, tokens: Any, prompt_length: Count, temperature: Scalar = 1.0
) -> tuple[Float[Array, "B R"], Float[Array, "B R"]]:
    """Log π of given responses, in one pass, and the entropy of the law each token was drawn from.

    Args:
        model: the network.
        params: of `init_model`, or trained.
        tokens: (B, P + R) integers: prompts and responses. May be traced.
        prompt_length: P ≥ 1.
        temperature: > 0, what logits are divided by. May be traced.

    Returns:
        log π (B, R) of each token of the response given all before it, and the entropy (B, R) in nats
        of the law at its place, both also where the response has ended (mask them there: `PAD` has no
        probability).

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/policy_optimization.md#language-model.

    """
    _check_model(model)
    check_shape("tokens", tokens, (None, None), "one text a row")
    rows, length = np.shape(tokens)
    if length > model.length:
        raise fail("tokens", f"{length} places", f"at most the model's {model.length}")
    prompt = check_integer("prompt_length", prompt_length, 1, length - 1)
    _check_tokens("tokens", tokens, model)
    check_number("temperature", temperature, 0, low_open=True)
    texts = jnp.asarray(tokens)
    read = texts[:, :-1]  # nothing follows the last token
    logits, _ = model.apply(
        _arrays(params), read, np.int32(0), _empty_cache(model, rows, length - 1)
    )
    law = _log_law(logits[:, prompt - 1 :], temperature)
    chosen = jnp.take_along_axis(law, texts[:, prompt:, None], axis=2)[:, :, 0]
    return chosen, -jnp.sum(jnp.exp(law) * law, axis=2)


def draw_responses(
    model: Any,
    params: Any,
    key: Any,
    prompts: Any,
    num_tokens: Count,
    temperature: Scalar = 1.0,
    *,
    greedy: bool = False,
) -> Responses:
    """Draw one response to each prompt, token by token, with a cache of keys and values.

    Args:
        model: the network.
        params: of `init_model`, or trained.
        key: one typed key. May be traced.
        prompts: (B, P) tokens, padded on the left. May be traced.
        num_tokens: R ≥ 1, the most tokens of a response.
        temperature: > 0, what logits are divided by. May be traced.
        greedy: always take the most likely token; log-probabilities remain those of π.

    Returns:
        `Responses`; log-probabilities are those of `token_log_probs` up to float32 rounding.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/policy_optimization.md#language-model.

    """
    _check_model(model)
    check_key("key", key)
    check_shape("prompts", prompts, (None, None), "one prompt a row")
    rows, prompt = np.shape(prompts)
    count = check_integer("num_tokens", num_tokens, 1)
    if prompt + count > model.length:
        got = f"{count} after prompts of {prompt}"
        raise fail("num_tokens", got, f"at most the model's {model.length} places in all")
    _check_tokens("prompts", prompts, model)
    check_number("temperature", temperature, 0, low_open=True)
    params = _arrays(params)
    # The last token is drawn, never read.
    cache = _empty_cache(model, rows, prompt + count - 1)
    logits, cache = model.apply(params, jnp.asarray(prompts), np.int32(0), cache)

    def draw(logits: Any, place: Any, ended: Any) -> tuple[Any, Any]:
        law = _log_law(logits, temperature)
        if greedy:
            token = jnp.argmax(law, axis=1).astype(np.int32)
        else:
            own = jax.random.fold_in(key, place)
            noise = jax.random.gumbel(own, law.shape, DTYPE)
            token = jnp.argmax(law + noise, axis=1).astype(np.int32)
        chosen = jnp.take_along_axis(law, token[:, None], axis=1)[:, 0]
        drawn = (jnp.where(ended, PAD, token), jnp.where(ended, 0, chosen), ~ended)
        return drawn, ended | (token == END)

    def step(state: Any, place: Any) -> tuple[Any, Any]:
        token, ended, cache = state
        logits, cache = model.apply(params, token[:, None], prompt - 1 + place, cache)
        drawn, ended = draw(logits[:, 0], place, ended)
        return (drawn[0], ended, cache), drawn

    first, ended = draw(logits[:, -1], np.int32(0), jnp.zeros(rows, bool))
    places = jnp.arange(1, count, dtype=np.int32)
    _, others = jax.lax.scan(step, (first[0], ended, cache), places)
    columns = [
        jnp.concatenate([one[:, None], more.T], axis=1)
        for one, more in zip(first, others, strict=True)
    ]
    return Responses(*columns)


def _normed(x: Float[Array, "*B width"], scale: Float[Array, " width"]) -> Float[Array, "*B width"]:
    """Values of mean square 1, scaled (RMS norm)."""
    square = jnp.mean(x * x, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(square + np.float32(1e-6)) * scale.reshape((1,) * (x.ndim - 1) + (-1,))


def _log_law(logits: Float[Array, "*B V"], temperature: Any) -> Float[Array, "*B V"]:
    """Log π over tokens; `PAD` is never drawn."""
    scaled = logits / jnp.asarray(temperature).astype(DTYPE)
    padding = (np.arange(logits.shape[-1]) == PAD).reshape((1,) * (logits.ndim - 1) + (-1,))
    return jax.nn.log_softmax(jnp.where(padding, _NEVER, scaled), axis=-1)


def _empty_cache(model: CharacterModel, rows: int, length: int) -> tuple[jax.Array, jax.Array]:
    """Keys and values of each layer, and which places hold a token."""
    read = jnp.zeros((model.layers, 2, rows, length, model.width), DTYPE)
    return read, jnp.zeros((rows, length), bool)


def _arrays(params: Any) -> Any:
    """Parameters as JAX arrays in the model's precision."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(DTYPE), params)


def _check_model(model: Any) -> None:
    if not isinstance(model, CharacterModel):
        raise fail("model", f"a {type(model).__name__}", "a CharacterModel")


def _check_tokens(name: str, tokens: Any, model: CharacterModel) -> None:
    kind = tokens.dtype if is_traced(tokens) else np.asarray(tokens).dtype
    if not np.issubdtype(kind, np.integer):
        raise fail(name, f"values of type {kind}", "integers")
    check_number(name, tokens, 0, model.vocabulary - 1)
