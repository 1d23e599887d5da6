"""Cluster state and state kept between reconciles: immutable values that later stages read."""
