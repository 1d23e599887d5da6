"""Pure decisions, one package per stage of a reconcile: values in, values out; no IO, no clock, no client."""
