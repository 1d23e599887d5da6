"""Quarantine: ``spec.quarantine`` of a LeadershipPolicy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from bellwether.api.v1alpha1.settings_model import SettingsModel
from bellwether.core.settings import policy as core_policy


class Quarantine(SettingsModel[core_policy.Quarantine]):
    """Whether and for how long the process of a demoted broker that still delays acks=all may be paused."""

    moved: ClassVar[Mapping[str, str]] = {
        "afterSeconds": f"is always {core_policy.Quarantine().after_seconds}: remove it"
    }
