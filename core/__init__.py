"""boundlab: statements of learning theory as executable claims.

A *study* runs closed forms (`boundlab.theory`) and simulations (`boundlab.models`) on one grid
(`boundlab.analysis`) and states *claims* about the result; `verify` turns each into a verdict with
a declared false-alarm rate, and checks that a deliberately wrong control is rejected.
"""

import os
import sys
from pathlib import Path

if __name__ != "boundlab":
    raise ImportError(
        f"this folder is the package 'boundlab' and was imported as {__name__!r}; "
        "install the project and import boundlab"
    )

__version__ = "0.1.0"

# jaxlib prints two error lines for each cached program that it loads, unless this is set before jax
# is imported. Only the command line uses that cache, and only it may decide for the process.
if Path(sys.argv[0]).stem == "boundlab" or sys.orig_argv[1:3] == ["-m", "boundlab"]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # One device a core, so that a sweep keeps them all busy (up to 8: batches are a device's); and a
    # lower level of optimisation, which compiles a third faster and runs as fast here.
    if "XLA_FLAGS" not in os.environ:
        cores = min(os.cpu_count() or 1, 8)
        os.environ["XLA_FLAGS"] = (
            f"--xla_force_host_platform_device_count={cores} --xla_backend_optimization_level=1"
        )

from boundlab.versions import refuse_known_bad

refuse_known_bad()

from boundlab import precision, testing  # noqa: E402  (the guard comes before anything that uses jax)
from boundlab.claims import Claim, Evidence, Kind, Source  # noqa: E402
from boundlab.experiment import Study  # noqa: E402
from boundlab.registry import studies, study  # noqa: E402
from boundlab.sweeps import sweep  # noqa: E402
from boundlab.verdicts import Status, Verdict, verify  # noqa: E402

__all__ = [
    "Claim",
    "Evidence",
    "Kind",
    "Source",
    "Status",
    "Study",
    "Verdict",
    "precision",
    "studies",
    "study",
    "sweep",
    "testing",
    "verify",
]
