"""Recorded traces as values: what was seen of one policy over time, written down so that it can be judged again.

Pure: ``sections`` and ``clustersections`` put values of the core into plain JSON and back, ``patches`` says what
changed between two states, ``lines`` is the format of a trace's lines, ``anonymity`` takes names out.
``adapters/files/traces`` keeps traces in files, ``cli/recorder`` makes them, ``replays`` plays them.
"""
