"""The commands of the runbook pages, and an installation on which they are run."""
