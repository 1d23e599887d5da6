"""``python -m bellwether`` is the same as ``bellwether``."""

from bellwether.cli.main import main

main(prog_name="bellwether")
