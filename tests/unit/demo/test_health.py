from demo.health import Words, broker_word, policy_word


def body(**status: object) -> dict[str, object]:
    return {"spec": {"brokerId": 2}, "status": status}


def test_a_broker_without_status_is_unknown() -> None:
    word = broker_word({"spec": {"brokerId": 2}})

    assert (word.broker, word.verdict, word.demoted) == (2, "Unknown", False)


def test_a_sick_broker_is_read_with_its_reason_and_its_worst_latency() -> None:
    signals = [
        {"type": "StorageLatency", "latencyMicroseconds": 2_000},
        {"type": "StorageLatency", "latencyMicroseconds": 81_000},
    ]
    word = broker_word(
        body(
            verdict={"state": "Sick", "reason": "StorageSlow", "since": "2026-01-01T10:20:30Z"},
            conditions=[{"type": "Demoted", "status": "True"}, {"type": "Quarantined", "status": "False"}],
            signals=signals,
        )
    )

    assert (word.verdict, word.reason, word.demoted, word.held) == ("Sick", "StorageSlow", True, False)
    assert word.latencies == {"StorageLatency": 81.0}


def test_every_broker_must_be_there_and_healthy() -> None:
    healthy = broker_word(body(verdict={"state": "Healthy"}))

    assert Words("", {2: healthy}).all_healthy((2,))
    assert not Words("", {2: healthy}).all_healthy((1, 2))
    assert not Words("", {2: broker_word(body())}).all_healthy((2,))


def test_a_policy_says_why_it_is_ready_or_not() -> None:
    ready = {"type": "Ready", "status": "False", "reason": "Connecting", "message": "not read yet"}

    assert policy_word({"status": {"conditions": [ready]}}) == "Connecting: not read yet"
    assert policy_word({}) == "no status yet"
