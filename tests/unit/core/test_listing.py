"""Lists in messages: the first few names, and how many more there are."""

from bellwether.core.listing import few, named
from testkit.messages import assert_wording


def test_a_list_names_the_first_few_and_counts_the_others():
    assert few(["a", "b"], 2) == "a, b"
    assert_wording(few(["a", "b", "c"], 2, "; "))


def test_brokers_are_named_in_the_order_given():
    assert named([4]) == "broker 4"
    assert named({7: None, 3: None}) == "brokers 7, 3"
    assert_wording(named(range(8)), named(range(8), 8))
