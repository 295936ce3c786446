"""`sweep` on one device: values, layout, precision and cost."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from boundlab import blocks, entries, sweeps
from boundlab.sweeps import sweep


@pytest.fixture(scope="module")
def keys(key):
    return jax.random.split(jax.random.fold_in(key, 11), 7)


def walk(params, key):
    """A scan over split keys with a draw a step; all of it depends on both parameters."""

    def step(position, step_key):
        position = params["drift"] * position + jax.random.normal(step_key)
        return position, position

    start = params["start"].astype(float)
    _, path = jax.lax.scan(step, start, jax.random.split(key, 6))
    return {"path": path, "power": jnp.mean(path**2)}


def solve(params, key):
    """A well-conditioned linear system, large enough for a blocked kernel."""
    matrix = jax.random.normal(key, (30, 30))
    return jnp.linalg.solve(jnp.eye(30) + params["scale"] * (matrix @ matrix.T), matrix[0])


def direct(fn, grid, keys):
    """Every entry by a call of its own: dict of lists, in the order of the dataset."""
    names = list(grid)
    points = [()]
    for values in grid.values():
        points = [(*point, value) for point in points for value in values]
    one = jax.jit(fn)
    rows = [
        one({n: jnp.asarray(v) for n, v in zip(names, point, strict=True)}, key)
        for point in points
        for key in keys
    ]
    rows = [row if isinstance(row, dict) else {"value": row} for row in rows]
    lengths = [len(values) for values in grid.values()] + [len(keys)]
    stacked = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
    return {n: a.reshape(*lengths, *a.shape[1:]) for n, a in stacked.items()}


GRID = {"drift": np.array([0.2, 0.9]), "start": np.array([-1, 0, 3])}


@pytest.mark.smoke
def test_entry_is_fn_at_its_point_and_key(keys):
    result = sweep(walk, GRID, keys)
    expected = direct(walk, GRID, keys)
    assert result["path"].dims == ("drift", "start", "seed", "path_axis0")
    assert result["power"].dims == ("drift", "start", "seed")
    assert set(result.data_vars) == {"path", "power"}
    for name in ("path", "power"):
        np.testing.assert_allclose(result[name].values, expected[name], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(result["drift"], GRID["drift"])
    np.testing.assert_array_equal(result["start"], GRID["start"])
    np.testing.assert_array_equal(result["seed"], np.arange(7))


@pytest.mark.parametrize("batch_size", [1, 3, np.int64(50)])
def test_batch_size_changes_rounding_only(keys, batch_size):
    grid = {"scale": [0.1, 1.0]}
    result = sweep(solve, grid, keys, batch_size=batch_size)["value"]
    assert result.dims == ("scale", "seed", "value_axis0")
    expected = direct(solve, {"scale": np.array([0.1, 1.0])}, keys)["value"]
    error = np.abs(result.values - expected).max() / np.abs(expected).max()
    assert error < 1e-12


def test_groups_on_cpu_change_rounding_only(keys, monkeypatch):
    # Entries with large arrays go in groups of `width`; 7 isn't a multiple of 3.
    monkeypatch.setattr(entries, "_CACHE_BYTES", 3 * 6 * 8)
    monkeypatch.setattr(blocks, "_programs", {})
    grouped = sweep(walk, GRID, keys, batch_size=7)
    np.testing.assert_allclose(
        grouped["path"].values, direct(walk, GRID, keys)["path"], rtol=1e-12, atol=1e-12
    )


@pytest.mark.smoke
def test_more_keys_leave_the_first_entries_as_they_were(key):
    few = jax.random.split(key, 5)
    many = jax.random.split(key, 70)
    before = sweep(walk, GRID, few, batch_size=8)
    after = sweep(walk, GRID, many, batch_size=8)
    for name in ("path", "power"):
        np.testing.assert_array_equal(after[name][:, :, :5].values, before[name].values)


def test_every_point_gets_the_same_keys(keys):
    def draws(params, key):
        return jax.random.key_data(key), params["a"]

    result = sweep(lambda p, k: {"key": draws(p, k)[0]}, {"a": [1.0, 2.0]}, keys)["key"]
    expected = np.asarray(jax.random.key_data(keys))
    np.testing.assert_array_equal(result.values, np.stack([expected, expected]))
    assert result.dtype == np.uint32


def test_seeds_only_and_python_numbers(keys):
    result = sweep(lambda params, key: {"n": len(params), "u": jax.random.uniform(key)}, {}, keys)
    assert result["u"].dims == ("seed",)
    np.testing.assert_array_equal(result["n"], np.zeros(7))
    np.testing.assert_array_equal(result["u"], [float(jax.random.uniform(k)) for k in keys])


@pytest.mark.parametrize("x64", [True, False])
def test_grid_has_the_working_precision(keys, x64):
    seen = {}

    def note(params, key):
        seen.update({name: value.dtype for name, value in params.items()})
        assert all(value.shape == () for value in params.values())
        return params["a"]

    with jax.enable_x64(x64):
        result = sweep(note, {"a": np.float32([0.5]), "b": range(2), "c": np.uint8([3])}, keys)
    floats, integers = ("float64", "int64") if x64 else ("float32", "int32")
    assert seen == {"a": floats, "b": integers, "c": integers}
    assert result["value"].dtype == floats


def test_number_of_traces_does_not_depend_on_batches(keys):
    traced = chex.assert_max_traces(lambda params, key: params["a"] * jax.random.normal(key), n=2)
    sweep(traced, {"a": np.linspace(0.0, 1.0, 12)}, keys, batch_size=2)
    # The same program again, from a new function: looked at once, not traced for a batch.
    again = chex.assert_max_traces(lambda params, key: params["a"] * jax.random.normal(key), n=1)
    sweep(again, {"a": np.linspace(0.0, 1.0, 5)}, keys, batch_size=2)


def test_what_fn_closes_over_may_change_between_calls(keys):
    factor = np.array(2.0)

    def scaled(params, key):
        return factor * jnp.ones(())

    assert (sweep(scaled, {}, keys)["value"] == 2).all()
    factor = np.array(5.0)
    assert (sweep(scaled, {}, keys)["value"] == 5).all()


def test_a_kept_program_is_not_traced_again(keys):
    def make():
        factor = [2.0]
        return factor, lambda params, key: 7.0 * factor[0] * jnp.ones(())

    factor, first = make()
    assert (sweep(first, {}, keys)["value"] == 14).all()
    factor[0] = 5.0
    with jax.numpy_dtype_promotion("standard"):  # a setting on which a `jit` would trace anew
        assert (sweep(make()[1], {}, keys)["value"] == 14).all()


def test_device_memory_grows_with_batch_size_alone(keys, monkeypatch):
    def noisy(params, key):
        return jnp.cumsum(jax.random.normal(key, (4000,)))

    live = []
    run_batch = sweeps.run_batch

    def watched(program, *arguments):
        result = run_batch(program, *arguments)
        live.append(sum(array.nbytes for array in jax.live_arrays()))
        return result

    monkeypatch.setattr(sweeps, "run_batch", watched)
    many = jax.random.split(keys[0], 60)
    before = sum(array.nbytes for array in jax.live_arrays())
    sweep(noisy, {}, many, batch_size=4)
    assert len(live) == 15
    assert max(live) - before < 4000 * 8  # not even one entry stays on the device

    mesh = blocks.entry_mesh(None)
    entry = entries.trace_entry(noisy, (), (), jax.devices()[0])
    peak = {}
    for batch_size in (8, 32):
        program = blocks.batch_program(entry, batch_size, mesh)
        memory = program.memory_analysis()
        peak[batch_size] = memory.temp_size_in_bytes + memory.output_size_in_bytes
    assert 3.5 < peak[32] / peak[8] < 4.5


def test_default_batch_size_follows_the_arrays_of_one_entry():
    operator = np.eye(600)  # 2.9 MB, but the same for every entry
    graph = np.arange(3000) % 7

    def small(params, key):
        return operator @ jax.random.normal(key, (600,))

    def large(params, key):
        return jax.ops.segment_sum(jax.random.normal(key, (3000, 100)), graph, 7)

    def trivial(params, key):
        return jax.random.normal(key)

    def size(fn):
        return entries.trace_entry(fn, (), (), jax.devices()[0]).batch_size

    # One linear system at a time on CPU, where a batch of them can hang.
    solving = entries.trace_entry(solve, ("scale",), (np.dtype(float),), jax.devices()[0])
    assert (solving.width, solving.batch_size, solving.one_device) == (1, 16, False)

    assert size(large) == 1
    assert 128 <= size(small) <= 512
    assert size(trivial) == 4096


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_programs_that_use_other_arguments_are_told_apart(keys, names):
    """Equal but for which parameter or key they read, and run one after another."""
    grid = {"a": [1.0, 2.0], "b": [5.0, 7.0], "c": [3, 4]}
    for name in names:
        result = sweep(lambda params, key, name=name: params[name], grid, keys[:2], batch_size=4)
        expected = np.asarray(grid[name]).reshape((2, 1, 1, 1) if name == "a" else (1, 2, 1, 1))
        np.testing.assert_array_equal(result["value"], np.broadcast_to(expected, (2, 2, 2, 2)))
    # An unused name of the grid may change its place, its type or its number.
    for unused in ({}, {"b": [5.0]}, {"b": [5]}, {"b": [5.0], "d": [1]}):
        for grid in ({"a": [1.0, 2.0], **unused}, {**unused, "a": [1.0, 2.0]}):
            result = sweep(lambda params, key: params["a"], grid, keys[:2], batch_size=4)["value"]
            assert result.squeeze().transpose("a", "seed").values.tolist() == [[1, 1], [2, 2]]
    for fold in (0, 1):
        drawn = sweep(lambda p, k, f=fold: jax.random.uniform(jax.random.fold_in(k, f)), {}, keys)
        for value, key in zip(drawn["value"].values, keys, strict=True):
            assert value == jax.random.uniform(jax.random.fold_in(key, fold))


def test_a_mesh_set_by_the_caller_does_not_matter(keys):
    expected = sweep(walk, GRID, keys)
    explicit = jax.make_mesh((1,), ("rows",))
    with jax.set_mesh(explicit):
        assert sweep(walk, GRID, keys, mesh=explicit).identical(expected)


def test_empty_result(keys, tmp_path):
    for _ in range(2):
        result = sweep(lambda p, k: jnp.zeros((0, 2)), {}, keys, checkpoint=tmp_path / "log")
        assert result["value"].shape == (7, 0, 2)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex128"])
def test_result_keeps_its_type(keys, dtype):
    result = sweep(lambda params, key: jnp.ones((2,), dtype), {}, keys, batch_size=4)["value"]
    assert result.dtype == dtype
    assert (result == np.ones((), dtype)).all()
