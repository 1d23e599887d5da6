"""bellwether.dev/v1alpha1: the models that the CRDs are generated from."""
