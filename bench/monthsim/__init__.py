"""A simulated month: what detection demotes, rightly and wrongly, in worlds drawn from published distributions.

``python -m monthsim`` (``make bench-detection``) draws clusters and their months (``assumptions``, ``episodes``), lets
the probers' own counting see them (``paths``, ``disks``), lets the core decide (``reconciles``) and the peers'
published rules decide on the same world (``peers``), and scores who was right (``scoring``, ``reports``).
"""
