"""What a plan costs on a large cluster: ``make bench-plan``, which runs ``python -m plancosts``."""
