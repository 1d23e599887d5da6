"""The shipped fake: a cluster in memory with the vices of the real one."""
