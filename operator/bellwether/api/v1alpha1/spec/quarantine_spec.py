"""Quarantine: ``spec.quarantine`` of a LeadershipPolicy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from bellwether.api.v1alpha1.settings_model import SettingsModel
from bellwether.core.settings import policy as core_policy


class Quarantine(SettingsModel[core_policy.Quarantine]):
    """Whether and for how long a broker with a slow disk that delays acks=all may be held in a controlled shutdown."""

    moved: ClassVar[Mapping[str, str]] = {"afterSeconds": "is gone, as a broker is held at once: remove it"}
