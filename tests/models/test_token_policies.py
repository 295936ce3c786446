"""Small token policies: laws text after text, by softmax of scipy."""

import itertools

import jax
import numpy as np
import pytest
import scipy.special

from boundlab.models.teams import text_laws, token_features, total_variation
from boundlab.precision import x64

LENGTH, SIZE, DIM = 3, 3, 2


def test_laws_text_after_text():
    with x64():
        features = token_features(jax.random.key(0), LENGTH, SIZE, DIM)
        theta = np.array([0.7, -1.3])
        laws = text_laws(theta, features)
    assert [law.shape for law in laws] == [(3,), (9,), (27,)]
    for length, law in enumerate(laws, 1):
        expected = []
        for text in itertools.product(range(SIZE), repeat=length):
            chance = 1.0
            for t, token in enumerate(text):
                prefix = int("0" + "".join(map(str, text[:t])), SIZE)
                chance *= scipy.special.softmax(np.asarray(features[t])[prefix] @ theta)[token]
            expected.append(chance)
        np.testing.assert_allclose(law, expected, rtol=1e-12)


def test_features_are_on_the_sphere():
    features = token_features(jax.random.key(1), LENGTH, SIZE, DIM)
    for t, array in enumerate(features):
        assert array.shape == (SIZE**t, SIZE, DIM)
        np.testing.assert_allclose(np.linalg.norm(array, axis=-1), 1.0, rtol=1e-5)
    assert len(np.unique(np.concatenate([np.ravel(f) for f in features]))) == 13 * SIZE * DIM


def test_total_variation():
    first, second = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_array_equal(total_variation(first, second), [0.0, 1.0])


FEATURES = [np.ones((1, 2, 3)), np.ones((2, 2, 3))]


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("named", "function", "arguments"),
    [
        ("key", token_features, (0, 2, 2, 2)),
        ("num_tokens", token_features, (jax.random.key(0), 0, 2, 2)),
        ("num_tokens", token_features, (jax.random.key(0), 40, 2, 2)),
        ("vocabulary", token_features, (jax.random.key(0), 2, 0, 2)),
        ("dim", token_features, (jax.random.key(0), 2, 2, 0)),
        ("parameters", text_laws, (1.0, FEATURES)),
        ("parameters", text_laws, ([np.nan] * 3, FEATURES)),
        ("features", text_laws, ([1.0] * 3, [])),
        ("features", text_laws, ([1.0] * 2, FEATURES)),
        ("features", text_laws, ([1.0] * 3, FEATURES[::-1])),
        ("first", total_variation, (1.0, 1.0)),
        ("first", total_variation, ([-1.0, 2.0], [0.5, 0.5])),
        ("second", total_variation, ([0.5, 0.5], [1.0])),
    ],
)
def test_bad_input_is_named(named, function, arguments):
    with pytest.raises(ValueError, match=rf"^{named}: "):
        function(*arguments)
