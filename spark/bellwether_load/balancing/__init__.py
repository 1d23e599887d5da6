"""Choosing leaders, with numpy alone: no Spark, no IO."""
