"""What ``spark-submit`` is given, as it wants a file where ``python -m bellwether_load`` wants a module. Same arguments."""

from bellwether_load.__main__ import main

main(prog_name="bellwether_load")
