"""Optional parts of an installation: which extra of the distribution brings a package that is not installed.

In: the error of an import. Out: a sentence with the remedy. Called by the command line and by the operator.
"""

from __future__ import annotations

DISTRIBUTION = "bellwether-kafka"
"""What it is called on a package index; the command and the import package are called ``bellwether``."""

EXTRAS = {
    "botocore": "aws",
    "kopf": "operator",
    "numpy": "plan",
    "pandas": "spark",
    "pyarrow": "load",
    "pyspark": "spark",
    "scipy": "plan",
}
"""Import package -> the extra that brings it."""


def needed_extra(error: ModuleNotFoundError) -> str:
    """What to install, as the end of a sentence. Raises the error itself where no extra brings what is missing."""
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        raise error
    return f"needs the extra {extra}: pip install '{DISTRIBUTION}[{extra}]'"
