"""Generated tasks: every prompt, its answers and rewards, against plain Python on texts."""

import jax
import numpy as np
import pytest

from boundlab.models.character_tasks import (
    END,
    PAD,
    CharacterTask,
    addition_task,
    bracket_task,
    decode,
    encode,
    task_reward,
)

LENGTH = 3


@pytest.fixture(scope="module")
def addition(key: jax.Array) -> CharacterTask:
    return addition_task(key, 1, 0.3)


@pytest.fixture(scope="module")
def brackets(key: jax.Array) -> CharacterTask:
    return bracket_task(key, LENGTH, 2, 0.25)


def closes(text: str) -> bool:
    """Whether brackets match, by repeatedly removing pairs."""
    while (shorter := text.replace("()", "").replace("[]", "")) != text:
        text = shorter
    return text == ""


def rewards(task: CharacterTask, places: list[int], texts: list[str]) -> np.ndarray:
    width = task.answers.shape[1]
    rows = np.full((len(texts), width), PAD, np.int32)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = encode(task, text)
    return np.asarray(task_reward(task, np.array(places), rows))


def test_all_sums_are_there_with_their_answers(addition: CharacterTask) -> None:
    texts = [decode(addition, row) for row in addition.prompts]
    assert sorted(texts) == sorted(f"{a}+{b}=" for a in range(10) for b in range(10))
    for text, row in zip(texts, addition.answers, strict=True):
        assert decode(addition, row) == f"{eval(text[:-1])}$"
    assert addition.prompts.shape == (100, 4)
    assert (addition.prompts[:, -1] == encode(addition, "=")[0]).all()
    assert addition.vocabulary == 14
    assert addition_task(jax.random.key(1), 2).prompts.shape == (10_000, 6)


def test_a_sum_is_held_out_in_both_orders(addition: CharacterTask) -> None:
    held = {decode(addition, row) for row in addition.prompts[addition.held_out]}
    assert {f"{t[2]}+{t[0]}=" for t in held} == held
    unordered = {tuple(sorted((t[0], t[2]))) for t in held}
    assert len(unordered) == round(0.3 * 55)
    other = addition_task(jax.random.key(5), 1, 0.3)
    assert (other.held_out != addition.held_out).any()
    again = addition_task(jax.random.key(5), 1, 0.3)
    np.testing.assert_array_equal(other.held_out, again.held_out)


def test_sums_are_rewarded_for_the_answer_alone(addition: CharacterTask) -> None:
    prompts = [decode(addition, row) for row in addition.prompts]
    for prompt, right in (("7+8=", {"15$"}), ("2+3=", {"5$", "5$1", "5$$"})):
        texts = ["15$", "15", "5$", "015", "1$5", "+15", "$15", "5$1", "5$$", "05$", "5"]
        given = rewards(addition, [prompts.index(prompt)] * len(texts), texts)
        np.testing.assert_array_equal(given, [text in right for text in texts])
    everything = task_reward(addition, np.arange(100), addition.answers)
    assert everything.dtype == np.float32
    assert np.asarray(everything).all()


def test_prompts_of_brackets_are_all_that_can_be_closed(brackets: CharacterTask) -> None:
    found = {decode(brackets, row) for row in brackets.prompts}
    closings = [""]
    for _ in range(LENGTH):
        closings += [text + c for text in closings for c in ")]" if len(text) < LENGTH]
    expected = set()
    layer = [""]
    for _ in range(LENGTH):
        layer = [text + c for text in layer for c in "()[]"]
        expected |= {t for t in layer if not closes(t) and any(closes(t + c) for c in closings)}
    assert found == expected
    for prompt, answer in zip(brackets.prompts, brackets.answers, strict=True):
        text = decode(brackets, answer)
        assert text.endswith("$")
        assert closes(decode(brackets, prompt) + text[:-1])
    assert brackets.held_out.sum() == round(0.25 * len(found))


def test_brackets_are_rewarded_if_they_match(brackets: CharacterTask) -> None:
    """Every text of up to four characters after every prompt, against removal of pairs."""
    characters = "()[]$"
    texts = [""]
    for _ in range(LENGTH + 1):
        texts += [text + c for text in texts for c in characters if len(text) <= LENGTH]
    texts = sorted({t for t in texts if len(t) == LENGTH + 1})
    places = [i for i in range(len(brackets.prompts)) for _ in texts]
    given = rewards(brackets, places, texts * len(brackets.prompts))
    prompts = [decode(brackets, row) for row in brackets.prompts]
    expected = [
        "$" in text and closes(prompt + text.split("$")[0]) for prompt in prompts for text in texts
    ]
    np.testing.assert_array_equal(given, expected)
    assert 0 < np.sum(expected) < len(expected) / 4
    # An empty place before the end is no text, whatever stands after it.
    row = np.array([[PAD, *encode(brackets, ")"), END, PAD]])
    place = prompts.index("(")
    assert np.asarray(task_reward(brackets, np.array([place]), row)) == 0


def test_bad_input(key: jax.Array, addition: CharacterTask) -> None:
    for digits in (0, 3, 1.5):
        with pytest.raises(ValueError, match=r"^digits"):
            addition_task(key, digits)
    for share in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match=r"^held_out"):
            addition_task(key, 1, share)
        with pytest.raises(ValueError, match=r"^held_out"):
            bracket_task(key, held_out=share)
    with pytest.raises(ValueError, match=r"^key"):
        bracket_task(0)
    for length, kinds in ((1, 2), (17, 1), (14, 3)):
        with pytest.raises(ValueError, match=r"^length"):
            bracket_task(key, length, kinds)
    with pytest.raises(ValueError, match=r"^kinds"):
        bracket_task(key, 3, 4)
    with pytest.raises(ValueError, match=r"^text"):
        encode(addition, "1-2")
    with pytest.raises(ValueError, match=r"^tokens"):
        decode(addition, np.array([14]))
    fine = np.zeros((2, 3), np.int32)
    with pytest.raises(ValueError, match=r"^task"):
        task_reward("addition", np.arange(2), fine)
    for places in (np.array([0, 100]), np.array([0.0, 1.0])):
        with pytest.raises(ValueError, match=r"^prompts"):
            task_reward(addition, places, fine)
    for responses in (fine[:1], fine[:, :2], fine - 1, fine + 14, fine + 0.5):
        with pytest.raises(ValueError, match=r"^responses"):
            task_reward(addition, np.arange(2), responses)
