"""The demo: break a real Kafka cluster twice, watch its leaders leave the sick broker and come back.

``stage`` starts the parts, ``steps`` is the plan, ``scenario`` plays it and explains it in sentences of ``story``;
``traffic`` and ``watch`` measure from outside, ``screen`` shows, ``report`` adds up, ``invariants`` judges. Nothing
here asks Bellwether how well it did: leaders are counted by a client of the demo's own, latencies are those of its own
producers and consumers.
"""
