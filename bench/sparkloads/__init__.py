"""What the loads job takes for a day of samples: seconds, memory, and bytes a sample, for sizes that rise by tens."""
