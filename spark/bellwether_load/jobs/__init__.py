"""Entry points of the jobs. They read and write the store; what they compute is in the transforms."""
