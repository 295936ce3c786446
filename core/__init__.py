"""boundlab: statements of learning theory as executable claims.

A *study* runs closed forms (`boundlab.theory`) and simulations (`boundlab.models`) on one grid
(`boundlab.analysis`) and states *claims* about the result; `verify` turns each into a verdict with
a declared false-alarm rate, and checks that a deliberately wrong control is rejected.
"""

if __name__ != "boundlab":
    raise ImportError(
        f"this folder is the package 'boundlab' and was imported as {__name__!r}; "
        "install the project and import boundlab"
    )

__version__ = "0.1.0"

from boundlab.versions import refuse_known_bad

refuse_known_bad()

from boundlab import precision  # noqa: E402
