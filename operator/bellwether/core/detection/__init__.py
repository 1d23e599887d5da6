"""Judge every broker: signals and metadata in, one verdict with a reason per broker out."""
