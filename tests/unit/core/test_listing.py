"""Lists in messages: the first few names, and how many more there are."""

from bellwether.core.listing import few, named


def test_a_list_names_the_first_few_and_counts_the_others():
    assert few(["a", "b"], 2) == "a, b"
    assert few(["a", "b", "c"], 2, "; ") == "a; b and 1 more"


def test_brokers_are_named_in_the_order_given():
    assert named([4]) == "broker 4"
    assert named({7: None, 3: None}) == "brokers 7, 3"
    assert named(range(8)) == "brokers 0, 1, 2, 3, 4 and 3 more"
    assert named(range(8), 8) == "brokers 0, 1, 2, 3, 4, 5, 6, 7"
