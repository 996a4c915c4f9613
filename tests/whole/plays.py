"""What has to come of a job, looked at on the ledger and in everybody's purse. Not a test: the
tests of this folder play with it."""

from town import FEE, PERIOD_S, PURSE, REWARD, SEGMENTS, STAKE

PEOPLE = ("client", "honest", "cheat", "verifier")
STEP = 6  # that is falsified: the third of segment 1


def see_conviction(town, key):
    """The dispute, move by move; returns how many queries there were."""
    town.until_count(1, "convicted", key)
    (claim,) = town.events("claimed", key)
    assert claim["account"] == town.people["verifier"] and claim["segment"] == STEP // 4, claim
    for kind in ("answered", "ruled"):
        assert town.count(kind, key) == 1, town.events(job=key)
    queries, replies = town.count("queried", key), town.count("replied", key)
    assert queries == replies, (queries, replies)
    return queries


def see_pay(town, key, node, trouble=lambda: None):
    """Everything honest is attested, revealed, final and withdrawn; trouble comes as soon as the
    reveals are there."""
    town.until_count(SEGMENTS, "attested", key, "verifier")
    town.pass_time(PERIOD_S + 1)
    town.until_count(SEGMENTS, "revealed", key, "verifier")
    trouble()
    town.until_count(SEGMENTS, "revealed", key, "verifier")
    town.pass_time(2 * PERIOD_S + 1)
    town.until_count(SEGMENTS, "finalized", key)
    town.until_count(1, "closed", key)
    town.until_count(SEGMENTS, "settled", key, "verifier")
    assert town.count("claimed", key) == 0
    town.until(lambda: town.count("withdrawn", who="verifier") > 0, "the node withdraws")
    assert node.code() is None and "FAULT" not in node.said(), node.said()


def see_money(town, keys, gas):
    """A segment of the cheat's that the node attested before it was void gives its bond back."""
    town.ask("client", "job", "cancel", keys["cheat"])
    town.until(lambda: town.count("settled", keys["cheat"], "verifier")
               == town.count("attested", keys["cheat"], "verifier"), "all bonds are back")
    fees = SEGMENTS * FEE
    for who, wanted in (("client", PURSE - REWARD - fees + STAKE // 2), ("honest", PURSE + REWARD),
                        ("cheat", PURSE - STAKE), ("verifier", PURSE + fees + STAKE // 2)):
        lost = wanted - town.money(who)
        assert 0 <= lost <= gas, (who, wanted, lost)


def see_once(town, keys, nodes=("verifier",)):
    """Whatever happened, each thing has happened once; nodes with one key know of one claim."""
    for kind in ("claimed", "convicted"):
        assert town.count(kind) == 1, town.events(kind)
    for key in keys.values():
        for kind, most in (("accepted", 1), ("committed", SEGMENTS)):
            assert town.count(kind, key) == most, town.events(job=key)
        attested = [event["segment"] for event in town.events("attested", key)]
        assert len(set(attested)) == len(attested), attested
    claims = [town.ask(node, "verifier", "claims")["claims"] for node in nodes]
    assert max(map(len, claims)) == 1, claims
