"""Every reason has its sentence."""

from __future__ import annotations

import re

import pytest

from bellwether.core.reasons import SENTENCES, Reason


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_sentence_for_a_person(reason: Reason):
    sentence = SENTENCES[reason]
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert len(sentence) <= 120


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_one_word_as_kubernetes_wants_it(reason: Reason):
    assert re.fullmatch(r"[A-Z][A-Za-z]+", reason)


def test_no_sentence_explains_a_reason_that_is_gone():
    assert set(SENTENCES) == set(Reason)


def test_no_two_reasons_say_the_same():
    assert len(set(SENTENCES.values())) == len(Reason)
