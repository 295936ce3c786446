"""Which versions of jax and jaxlib are known to compute wrong numbers, and the refusal to run on them."""

from collections.abc import Mapping
from importlib import metadata
from typing import Final

# Each entry says what goes wrong, so that `boundlab doctor` and the error can repeat it.
KNOWN_BAD: Final[Mapping[str, str]] = {
    "0.10.2": "jit(vmap(...)) of a reduction over about 16,000 rows is wrong on CPU "
    "(jax-ml/jax#39103)",
    "0.11.0": "scatter-add is wrong on GPU (jax-ml/jax#38806)",
    "0.11.1": "scans that record their steps take quadratic time (jax-ml/jax#40101)",
}
RECOMMENDED: Final = "0.10.1 on Python 3.11, 0.11.2 or later on Python 3.12 and later"


def refuse_known_bad(found: Mapping[str, str] | None = None) -> None:
    """Raise `ImportError` if jax or jaxlib is a version that is known to compute wrong numbers.

    `found` maps a distribution's name to its version; by default, what `jax.__version__` and
    `jaxlib.__version__` say.
    """
    if found is None:
        import jax
        import jaxlib

        found = {"jax": jax.__version__, "jaxlib": jaxlib.__version__}
    for name, version in found.items():
        # A local build such as 0.10.2+cuda13 has the same fault.
        fault = KNOWN_BAD.get(version.split("+")[0])
        if fault is not None:
            raise ImportError(
                f"boundlab refuses {name} {version}: {fault}. Install {RECOMMENDED} "
                f"(pip install -c constraints.txt boundlab takes them)."
            )


def versions() -> dict[str, str]:
    """Installed versions of the libraries that numbers depend on, `absent` where not installed."""
    names = ("boundlab", "jax", "jaxlib", "numpy", "scipy", "xarray", "flax", "optax", "jraph")
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found
