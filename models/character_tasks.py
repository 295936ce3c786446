"""Small tasks of text whose answers are verified exactly: addition, and closing brackets.

A task lists all of its prompts, so that a share of them can be held out of every training. Layout of a
text of P + R characters: the prompt ends at place P (`PAD` before it), the response begins there, ends
with `END` and is `PAD` after it.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from boundlab.checks import check_integer, check_key, check_number, check_shape, fail
from boundlab.precision import is_traced
from boundlab.typing import Count, Scalar

PAD, END = 0, 1
# As text: PAD is nothing, END a full stop of the language.
END_CHARACTER = "$"
_OPEN, _CLOSE = "([{", ")]}"
MOST_PROMPTS = 2**17


class CharacterTask(NamedTuple):
    """All prompts of a task, one right response of each, and which of them are held out."""

    name: str
    """`addition` or `brackets`."""
    characters: str
    """Character of each token from 2 on; tokens 0 and 1 are `PAD` and `END`."""
    prompts: Int[np.ndarray, "N P"]
    """Every prompt, padded on the left."""
    answers: Int[np.ndarray, "N R"]
    """A right response to each (to brackets the shortest), padded on the right."""
    held_out: Bool[np.ndarray, " N"]
    """Prompts that no training may see."""

    @property
    def vocabulary(self) -> int:
        """Number of tokens, `PAD` and `END` among them."""
        return len(self.characters) + 2


def addition_task(key: Any, digits: Count = 2, held_out: Scalar = 0.2) -> CharacterTask:
    """Sums of two integers of up to `digits` digits: "12+7=" is answered by "19$".

    All 100^digits ordered pairs are prompts. A pair and the same one turned round are held out
    together: otherwise most held-out sums would have been seen in the other order.

    Args:
        key: one typed key, concrete: which pairs are held out.
        digits: 1 or 2.
        held_out: share of the unordered pairs, in (0, 1).

    Returns:
        `CharacterTask` with P = 2·digits + 2, R = digits + 2.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/policy_optimization.md#language-model.

    """
    width = check_integer("digits", digits, 1, 2)
    numbers = range(10**width)
    pairs = [(a, b) for a in numbers for b in numbers]
    characters = "0123456789+="
    prompts = _table([f"{a}+{b}=" for a, b in pairs], characters, 2 * width + 2, left=True)
    answers = _table([f"{a + b}$" for a, b in pairs], characters, width + 2)
    unordered = {
        pair: i for i, pair in enumerate(itertools.combinations_with_replacement(numbers, 2))
    }
    classes = np.array([unordered[min(a, b), max(a, b)] for a, b in pairs])
    chosen = _held_out(key, held_out, len(unordered))
    return CharacterTask("addition", characters, prompts, answers, chosen[classes])


def bracket_task(
    key: Any, length: Count = 6, kinds: Count = 2, held_out: Scalar = 0.2
) -> CharacterTask:
    """Texts of brackets to be closed: "(()[" is answered by "])$", or by "()])$", any that fits.

    Prompts are all texts of 1 to `length` brackets in which nothing is closed wrongly and something is
    still open. A response is right if prompt and response together are balanced and it ends in time.

    Args:
        key: one typed key, concrete: which prompts are held out.
        length: ≥ 2.
        kinds: 1 to 3 kinds of brackets; at most 2¹⁷ prompts.
        held_out: share of the prompts, in (0, 1).

    Returns:
        `CharacterTask` with P = `length`, R = `length` + 1.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/policy_optimization.md#language-model.

    """
    longest = check_integer("length", length, 2, 16)
    count = check_integer("kinds", kinds, 1, 3)
    opening, closing = _OPEN[:count], _CLOSE[:count]
    layer, texts = {"": ""}, dict[str, str]()
    for _ in range(longest):
        following = {}
        for text, due in layer.items():
            for kind, character in enumerate(opening):
                following[text + character] = closing[kind] + due
            if due:
                following[text + due[0]] = due[1:]
        layer = following
        texts |= {text: due for text, due in layer.items() if due}
        if len(texts) > MOST_PROMPTS:
            raise fail("length", longest, f"at most {MOST_PROMPTS} prompts of {count} kinds")
    characters = opening + closing
    prompts = _table(list(texts), characters, longest, left=True)
    answers = _table([due + END_CHARACTER for due in texts.values()], characters, longest + 1)
    chosen = _held_out(key, held_out, len(texts))
    return CharacterTask("brackets", characters, prompts, answers, chosen)


def task_reward(task: Any, prompts: Any, responses: Any) -> Float[Array, " B"]:
    """1 for a right response, else 0; nothing for a half right one. Of arrays, for use in `jit`.

    Args:
        task: of `addition_task` or `bracket_task`.
        prompts: (B,) integers, places of the prompts in `task.prompts`. May be traced.
        responses: (B, R) tokens; what stands after the first `END` isn't read. May be traced.

    Returns:
        (B,) float32.

    Raises:
        ValueError: naming the argument.

    Source: derived, docs/policy_optimization.md#language-model.

    """
    _check_task(task)
    check_shape("prompts", prompts, (None,), "one place a response")
    check_shape("responses", responses, (len(prompts), task.answers.shape[1]), "tokens")
    for name, value, count in (
        ("prompts", prompts, len(task.prompts)),
        ("responses", responses, task.vocabulary),
    ):
        kind = np.asarray(value).dtype if not is_traced(value) else value.dtype
        if not np.issubdtype(kind, np.integer):
            raise fail(name, f"values of type {kind}", "integers")
        check_number(name, value, 0, count - 1)
    places, given = jnp.asarray(prompts), jnp.asarray(responses)
    ended = jnp.cumsum(given == END, axis=1, dtype=np.int32)
    given = jnp.where((ended > 1) | ((ended == 1) & (given != END)), PAD, given)
    if task.name == "addition":
        right = (given == jnp.asarray(task.answers)[places]).all(axis=1)
    else:
        texts = jnp.concatenate([jnp.asarray(task.prompts)[places], given.astype(np.int32)], axis=1)
        # A `PAD` before the end is no bracket, but no text either.
        whole = ((given != PAD) | (ended > 0)).all(axis=1) & (ended[:, -1] > 0)
        right = _balanced(texts, len(task.characters) // 2) & whole
    return right.astype(np.float32)


def encode(task: Any, text: str) -> Int[np.ndarray, " characters"]:
    """Tokens of a text; "$" is `END`. `ValueError` naming `text` for a character that is not known."""
    _check_task(task)
    known = {character: i + 2 for i, character in enumerate(task.characters)}
    known[END_CHARACTER] = END
    unknown = sorted({character for character in text if character not in known})
    if unknown:
        raise fail("text", f"{text!r} with {''.join(unknown)!r}", f"only {''.join(known)!r}")
    return np.array([known[character] for character in text], np.int32)


def decode(task: Any, tokens: Any) -> str:
    """Text of tokens (n,), `PAD` left out."""
    _check_task(task)
    check_shape("tokens", tokens, (None,), "tokens of one text")
    check_number("tokens", tokens, 0, task.vocabulary - 1)
    shown = ["", END_CHARACTER, *task.characters]
    return "".join(shown[int(token)] for token in np.asarray(tokens))


def _check_task(task: Any) -> None:
    if not isinstance(task, CharacterTask):
        raise fail("task", f"a {type(task).__name__}", "a CharacterTask")


def _balanced(texts: Int[Array, "B T"], kinds: int) -> Bool[Array, " B"]:
    """Whether each text closes all it opens, in order. The stack is an integer, one digit a bracket.

    It may overflow in texts that open more than they have characters left to close, which fail anyhow.
    """

    def read(state: Any, token: Int[Array, " B"]) -> tuple[Any, None]:
        stack, depth, fine = state
        place = token - 2
        opens = (place >= 0) & (place < kinds)
        closes = place >= kinds
        fits = (depth > 0) & (stack % kinds == place - kinds)
        fine = fine & (~closes | fits)
        stack = jnp.where(opens, stack * kinds + place, jnp.where(closes, stack // kinds, stack))
        depth = depth + opens.astype(np.int32) - closes.astype(np.int32)
        return (stack, depth, fine), None

    zero = jnp.zeros(len(texts), np.int32)
    start = (zero, zero, zero == 0)
    (_, depth, fine), _ = jax.lax.scan(read, start, texts.T)
    return fine & (depth == 0)


def _table(
    texts: list[str], characters: str, width: int, *, left: bool = False
) -> Int[np.ndarray, "N width"]:
    """Tokens of the texts, padded on one side."""
    known = {character: i + 2 for i, character in enumerate(characters)} | {END_CHARACTER: END}
    table = np.full((len(texts), width), PAD, np.int32)
    for row, text in zip(table, texts, strict=True):
        tokens = [known[character] for character in text]
        row[width - len(text) if left else 0 :][: len(text)] = tokens
    return table


def _held_out(key: Any, share: Scalar, count: int) -> Bool[np.ndarray, " count"]:
    """A random choice of that share, at least one and not all."""
    check_key("key", key)
    if is_traced(key):
        raise fail("key", "a traced key", "a concrete one: the split is no part of a jit")
    check_number("held_out", share, 0, 1, low_open=True, high_open=True)
    size = min(max(round(float(np.asarray(share)) * count), 1), count - 1)
    chosen = np.zeros(count, bool)
    chosen[np.asarray(jax.random.permutation(key, count))[:size]] = True
    return chosen
