"""The custom resources, as typed models."""
