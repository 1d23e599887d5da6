"""The values of the chart as typed models: the one source of its ``values.yaml``, its JSON schema and its README."""
