"""Losses of a broker and of a rack: what the others then carry, which orders of replicas keep it low, and a bound."""
