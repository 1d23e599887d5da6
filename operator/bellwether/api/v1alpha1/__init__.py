"""Models of bellwether.dev/v1alpha1, from which the CRDs are generated."""
