"""What has to come of a job, looked at on the ledger and in everybody's purse. Not a test: the
tests of this folder play with it."""

from town import FEE, PERIOD_S, PRIZE, PURSE, REWARD, SEGMENTS, STAKE

PEOPLE = ("client", "honest", "cheat", "verifier")
STEP = 6  # that is falsified: the third of segment 1


def pass_sealing(town):
    """Every seat has sealed its verdict about every segment, and the time to seal is over."""
    def sealed():
        committed = town.count("committed")  # a reorganization may have taken some away
        return town.count("sealed a verdict") >= committed >= SEGMENTS * town.count("accepted") > 0

    if town.count("revealed") == 0 and town.count("claimed") == 0:
        town.until(sealed, "all seats seal")
        town.pass_time(PERIOD_S + 1)


def see_conviction(town, key):
    """The dispute, move by move; returns how many queries there were."""
    pass_sealing(town)
    town.until_count(1, "convicted", key)
    (claim,) = town.events("claimed", key)
    assert claim["account"] == town.people["verifier"] and claim["segment"] == STEP // 4, claim
    for kind in ("answered", "ruled"):
        assert town.count(kind, key) == 1, town.events(job=key)
    queries, replies = town.count("queried", key), town.count("replied", key)
    assert queries == replies, (queries, replies)
    return queries


def see_pay(town, key, node, trouble=lambda: None):
    """Everything honest is sealed, revealed, final and withdrawn; trouble comes as soon as the
    verdicts are revealed."""
    pass_sealing(town)
    town.until_count(SEGMENTS, "revealed", key, "verifier")
    trouble()
    town.until_count(SEGMENTS, "revealed", key, "verifier")
    town.pass_time(2 * PERIOD_S + 1)
    town.until_count(SEGMENTS, "finalized", key)
    town.until_count(1, "closed", key)
    assert town.count("claimed", key) == 0
    town.until(lambda: town.count("withdrawn", who="verifier") > 0, "the node withdraws")
    town.until(lambda: node.code() is None, "it lives, or lives again after a death of the test")
    assert "FAULT" not in node.said(), node.said()


def see_money(town, keys, gas):
    """All bonds come back, those of the void job too; half of the cheat's stake is burned."""
    town.ask("client", "job", "close", keys["cheat"])
    town.until_count(1, "paid", keys["cheat"])
    fees = SEGMENTS * FEE
    wanted = {"client": PURSE - REWARD - fees + PRIZE, "honest": PURSE + REWARD,
              "cheat": PURSE - STAKE, "verifier": PURSE + fees + PRIZE}
    town.until(lambda: wanted["verifier"] - town.money("verifier") <= gas, "all bonds are back")
    town.ask("client", "job", "collect")
    for who, amount in wanted.items():
        lost = amount - town.money(who)
        assert 0 <= lost <= gas, (who, amount, lost)


def see_once(town, keys, nodes=("verifier",)):
    """No matter how it went, each thing has happened once; nodes with one key know of one claim."""
    for kind in ("claimed", "convicted"):
        assert town.count(kind) == 1, town.events(kind)
    for key in keys.values():
        for kind, most in (("accepted", 1), ("committed", SEGMENTS)):
            assert town.count(kind, key) == most, town.events(job=key)
        sealed = [event["segment"] for event in town.events("sealed a verdict", key)]
        assert len(set(sealed)) == len(sealed), sealed
    claims = [town.ask(node, "verifier", "claims")["claims"] for node in nodes]
    assert max(map(len, claims)) == 1, claims
