"""bellwether.dev/v1alpha1: the models that the CRDs are generated from."""

from bellwether.api.v1alpha1.brokerhealth import BrokerHealth
from bellwether.api.v1alpha1.leadershippolicy import LeadershipPolicy
from bellwether.api.v1alpha1.models import API_VERSION, GROUP, VERSION, InvalidObject
from bellwether.api.v1alpha1.signalentries import SignalEntry, Unreadable, entry_of, read_entries

__all__ = [
    "API_VERSION",
    "GROUP",
    "VERSION",
    "BrokerHealth",
    "InvalidObject",
    "LeadershipPolicy",
    "SignalEntry",
    "Unreadable",
    "entry_of",
    "read_entries",
]
