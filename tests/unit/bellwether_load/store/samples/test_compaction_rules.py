import pytest

from bellwether_load.store.samples.compaction_rules import current, rivals, superfluous


def files(**rounds: str) -> dict[str, frozenset[str]]:
    """Files by name; each letter is a round."""
    return {name: frozenset(letters) for name, letters in rounds.items()}


def test_without_compaction_every_round_counts() -> None:
    assert current(files(a="a", b="b")) == ("a", "b")
    assert current({}) == ()


def test_what_a_compacted_file_holds_does_not_count_again() -> None:
    found = files(a="a", b="b", c="c", hour="ab")
    assert current(found) == ("c", "hour")
    assert superfluous(found) == {"a": "hour", "b": "hour"}


def test_a_deletion_that_was_cut_off_in_the_middle_changes_nothing() -> None:
    assert current(files(b="b", hour="ab")) == ("hour",)


def test_a_day_takes_the_place_of_its_hours_and_of_rounds_left_from_before() -> None:
    found = files(a="a", noon="ab", one="cd", e="e", day="abcde")
    assert current(found) == ("day",)
    assert superfluous(found) == dict.fromkeys(["a", "noon", "one", "e"], "day")


def test_of_two_files_alike_the_first_by_name_counts() -> None:
    found = files(p="ab", q="ab", a="a")
    assert current(found) == ("p",)
    assert superfluous(found) == {"q": "p", "a": "p"}


def test_of_two_rival_files_the_redundant_one_does_not_count() -> None:
    # q was settled first: its own files have gone, while c still lies next to its rival p.
    found = files(p="bc", q="ab", c="c")
    assert current(found) == ("c", "q")


def test_nothing_is_removed_for_the_sake_of_a_rival() -> None:
    found = files(p="bc", q="ab", a="a", b="b", c="c")
    assert rivals(found) == {"p", "q"}
    assert superfluous(found) == {}
    assert current(found) == ("a", "p")


def test_rivals_go_once_one_file_holds_what_both_do() -> None:
    found = files(p="bc", q="ab", c="c", day="abc")
    assert current(found) == ("day",)
    assert superfluous(found) == dict.fromkeys(["p", "q", "c"], "day")


def test_two_rivals_that_take_the_place_of_others_in_turn() -> None:
    # The first by name to go would leave the second one without its rounds: it is not the one that goes.
    found = files(z1="ab", z2="cd", r1="bc", r2="de", e="e")
    assert current(found) == ("e", "z1", "z2")


def test_where_no_choice_holds_every_round_once_none_is_lost() -> None:
    assert current(files(p="ab", q="bc")) == ("p", "q")


@pytest.mark.timeout(60)
def test_a_folder_full_of_forged_rivals_takes_no_time() -> None:
    forged = {f"f{n}": frozenset(f"{n + i}" for i in range(3)) for n in range(60)}
    alone = {round_: frozenset([round_]) for held in forged.values() for round_ in held}
    assert set(current(forged | alone)) >= set(forged)
