"""Store of files by date and by name: samples, problems and plans, wherever a URI leads."""
