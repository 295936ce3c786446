"""Types of public arguments.

Parameters of public functions are typed loosely and checked by hand, so that bad input gives a
`ValueError` that names the argument; results and private helpers carry shapes (jaxtyping).
"""

from collections.abc import Sequence

import jax
import numpy as np

# One number: Python, NumPy or a (possibly traced) JAX scalar. A `float` alone would refuse an int
# and a tracer under a run-time type checker.
Scalar = jax.Array | np.ndarray | np.bool | np.number | bool | int | float
# One or more numbers.
Numbers = Scalar | Sequence[float] | Sequence[int]
# A count; NumPy and JAX integers may be 0-d arrays. A `float` or a longer array is let through to the
# check by hand, which refuses it and names the argument; a traced one too, where counts are static.
Count = int | np.integer | float | jax.Array | np.ndarray
