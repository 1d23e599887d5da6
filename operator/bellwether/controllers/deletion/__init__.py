"""The end of a policy: finalizer, restoration or export of baselines, requests to uninstall."""
