"""What ``spark-submit`` is given: it wants a file, not a module. Same arguments as ``python -m bellwether_load``."""

from bellwether_load.__main__ import main

main(prog_name="bellwether_load")
