"""Verbs around an installation: operator, crds, undo-record, uninstall."""
