"""The undo record in a file, for commands that work without a Kubernetes API."""
