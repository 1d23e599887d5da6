"""Every reason has its sentence."""

from __future__ import annotations

import re

from bellwether.core.reasons import DESCRIPTIONS, Reason


def test_every_reason_has_a_sentence_for_a_person():
    for reason in Reason:
        sentence = DESCRIPTIONS[reason]
        assert sentence[0].isupper(), reason
        assert sentence.endswith("."), reason
        assert len(sentence) <= 120, reason


def test_every_reason_is_one_word_as_kubernetes_wants_it():
    assert [reason for reason in Reason if not re.fullmatch(r"[A-Z][A-Za-z]+", reason)] == []


def test_no_sentence_explains_a_reason_that_is_gone():
    assert set(DESCRIPTIONS) == set(Reason)


def test_no_two_reasons_say_the_same():
    assert len(set(DESCRIPTIONS.values())) == len(Reason)
