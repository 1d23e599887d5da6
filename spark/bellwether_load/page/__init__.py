"""Pages for people: one file each, with all that it needs inside it, readable without scripts and without a network.

Values in, text out; pure. ``plan_summary`` gathers what a page tells, ``plan_page`` puts it together from figures,
charts and tables, ``markup`` is the only place where text becomes HTML.
"""
