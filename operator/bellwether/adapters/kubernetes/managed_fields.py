"""Managed fields: the last field manager that wrote a field, as recorded by the API server.

In: an object with its managedFields. Out: text for a message, empty if there is no manager. A manager is a program, not
a person: the audit log of the API server contains the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellwether.adapters.kubernetes.api_client import Object


def owner_of(found: Object, *path: str) -> str:
    """The field manager that last wrote a field, or fields below it: ``field manager kubectl-patch``."""
    latest, name = "", ""
    for entry in found["metadata"].get("managedFields") or ():
        if isinstance(entry, Mapping) and _owns(entry.get("fieldsV1"), path):
            time = str(entry.get("time") or "")
            if time >= latest:
                latest, name = time, str(entry.get("manager") or "")
    return f"field manager {name}" if name else ""


def _owns(fields: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(fields, Mapping) or f"f:{step}" not in fields:
            return False
        fields = fields[f"f:{step}"]
    return True
