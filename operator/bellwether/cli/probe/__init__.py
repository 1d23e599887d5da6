"""The probers of ``bellwether probe``, one a file, each put together from what its policy says."""
