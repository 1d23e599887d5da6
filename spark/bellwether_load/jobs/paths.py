"""A store's files as Spark names them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

# Hadoop's names for the object stores that Arrow calls otherwise.
_SCHEMES = {"s3": "s3a", "gcs": "gs"}


def spark_path(uri: str, path: str) -> str:
    """The path that Spark reads for ``path`` in the store at ``uri``; options in the URI's query are not Spark's."""
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        return (Path(parts.path).absolute() / path).as_uri()
    place = parts.netloc.rpartition("@")[2]
    return f"{_SCHEMES.get(parts.scheme, parts.scheme)}://{place}{parts.path.rstrip('/')}/{path}"
