"""Entry points of the jobs. They read and write the store; the computations are in the transforms."""
