"""The custom resources and the operator configuration, as typed models."""
