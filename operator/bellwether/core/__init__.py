"""What Bellwether thinks: pure values and functions, in the order in which a cycle uses them.

``clusters`` and ``signals`` are what was seen, ``policies`` what is wanted, ``baselines`` what was done before;
``verdicts`` judge every broker, ``guards`` refuse, ``demotions`` decide who may lead, ``plans`` says which partition
moves where, ``elections`` what the next step of each move is, ``statuses`` what is reported. A stage may look back,
never ahead. No module here does IO, reads a clock, rolls dice or knows a client: linters say so.
"""
