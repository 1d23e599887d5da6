"""Quarantine: ``spec.quarantine`` of a LeadershipPolicy."""

from __future__ import annotations

from bellwether.api.v1alpha1.settings_model import SettingsModel
from bellwether.core.settings import policy as core_policy


class Quarantine(SettingsModel[core_policy.Quarantine]):
    """Whether and for how long the process of a demoted broker that still delays acks=all may be paused."""
