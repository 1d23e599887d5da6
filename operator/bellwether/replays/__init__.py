"""Recorded traces played through the real cycle: what would be judged and done, under the settings of then or others.

``playing`` takes turns over a recorded trace, ``timelines`` says what came of them, ``comparisons`` holds that against
what the operator said at the time, ``settings`` reads and changes the policy that a trace was recorded under.
"""
