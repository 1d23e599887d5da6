"""Recheck a load plan from its inputs alone: the proof that ``docs/internals/plan-certificate.md`` gives, carried out.

Whole numbers and fractions of the standard library, and nothing else: no module here imports another part of
Bellwether, so nothing is shared with whatever made the plan. ``claims`` says what problem and plan say, ``loadtables``
what each partition carries, ``sweeps`` reads all partitions once, ``bounds`` draws the sums, ``verifying`` compares.
"""
