"""CRD manifests and the reference page, generated from the models."""
