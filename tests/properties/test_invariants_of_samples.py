"""Whatever is cut off, and with any other compactor: no round is lost, and none counts twice."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import assume, event, given
from hypothesis import strategies as st

from bellwether_load.store.samples.compaction_rules import current, rivals, superfluous

Files = dict[str, frozenset[str]]


@dataclass
class Compactor:
    """A process that lists, chooses, writes, and removes, as late as it likes; each step may be its last."""

    chosen: Files = field(default_factory=dict)
    going: list[str] = field(default_factory=list)


@dataclass
class Folder:
    """A day's folder: whole files that appear and go one at a time."""

    files: Files = field(default_factory=dict)
    rounds: set[str] = field(default_factory=set)

    def take(self, step: str, who: Compactor, picked: list[bool], number: int) -> None:
        """One step of one process."""
        if step == "sample":
            self.sample()
        elif step == "choose":
            # An opened file can be read to its end even when it goes meanwhile.
            counting = zip(current(self.files), picked, strict=False)
            who.chosen = {name: self.files[name] for name, wanted in counting if wanted}
        elif step == "write" and len(who.chosen) > 1:
            # Names come in any order: they say nothing of who was first.
            self.files[f"c{number * 7919 % 100:02}-{number}"] = frozenset().union(*who.chosen.values())
            who.chosen = {}
        elif step == "look":
            who.going = sorted(superfluous(self.files))
        elif step == "remove" and who.going:
            self.files.pop(who.going.pop(), None)

    def sample(self) -> None:
        name = f"r{len(self.rounds):03}"
        self.rounds.add(name)
        self.files[name] = frozenset([name])


# A step, whose it is, and which of the files that count are chosen.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["sample", "choose", "choose", "write", "write", "look", "remove", "remove"]),
        st.integers(0, 2),
        st.lists(st.booleans(), min_size=6, max_size=6),
    ),
    min_size=20,
    max_size=80,
)


@given(STEPS)
def test_every_round_counts_once_wherever_compactions_are_cut_off(steps: list[tuple[str, int, list[bool]]]) -> None:
    folder, processes = Folder(), [Compactor() for _ in range(3)]
    for _ in range(5):
        folder.sample()
    for number, (step, whose, picked) in enumerate(steps):
        folder.take(step, processes[whose], picked, number)
        disputed = len(rivals(folder.files))
        event(f"rivals: {disputed}")
        assume(disputed <= 12)
        held = [name for path in current(folder.files) for name in folder.files[path]]
        assert sorted(held) == sorted(folder.rounds)


@given(st.dictionaries(st.text("pqrstuvw", min_size=2), st.frozensets(st.sampled_from("abcdefgh"), min_size=1)))
def test_whatever_files_claim_to_hold_no_round_is_lost(files: Files) -> None:
    everything = frozenset().union(*files.values())
    assert frozenset().union(*(files[path] for path in current(files))) == everything
    left = {path: held for path, held in files.items() if path not in superfluous(files)}
    assert frozenset().union(*left.values()) == everything
