"""From DataFrame to DataFrame, without IO."""
