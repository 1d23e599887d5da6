"""Store of samples, problems and plans under a URI."""
