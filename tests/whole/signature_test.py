"""Goal: the key of a job and the signatures of its segments are good on one ledger only.
Method: one client opens one job, with one salt, on several ledgers; a solver posts one bundle to
each. Keys and signatures are compared with a second implementation (tests/support/keccak.py), on
embedded ledgers and on the pinned anvil."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import town as stage  # noqa: E402
from keccak import keccak256, typed_message, words  # noqa: E402
from town import SEGMENTS, Town  # noqa: E402

PEOPLE = ("client", "honest")
DOMAIN = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
SEGMENT = "Segment(bytes32 job,uint256 index,uint256 steps,bytes32 root)"
STEPS = 4  # of each segment
SALT = 7


def chain_of(town, on_chain):
    kind, number = town.ask("client", "ledger", "status")["chain"].split(":")
    assert kind == ("eip155" if on_chain else "local"), kind
    return int(number, 10 if on_chain else 16)


def open_on(town, job, on_chain):
    """The key, compared with what the five words give."""
    key = town.open_job(job, "--salt", str(SALT), "--seats", "0")
    registry = int(town.place.get("LOCKSTEP_REGISTRY", "0x0"), 16)
    job_id = bytes.fromhex(town.ask("client", "job", "show", job)["id"])
    wanted = keccak256(words(chain_of(town, on_chain), registry,
                             int(town.people["client"], 16), job_id, SALT))
    assert key == "0x" + wanted.hex(), (key, wanted.hex())
    return key


def see_signatures(town, bundle, key, on_chain):
    """Signing is deterministic: the wallet signs the message of this file to the same bytes."""
    segments = town.ask("honest", "bundle", "segments", bundle)["segments"]
    assert len(segments) == SEGMENTS
    registry = int(town.place.get("LOCKSTEP_REGISTRY", "0x0"), 16)
    domain = (keccak256(b"Lockstep"), keccak256(b"1"), chain_of(town, on_chain), registry)
    for segment in segments:
        message = typed_message(DOMAIN, domain, SEGMENT,
                                (bytes.fromhex(key[2:]), segment["segment"], STEPS,
                                 bytes.fromhex(segment["root"])))
        wanted = town.ask("honest", "wallet", "sign", "--hash", "0x" + message.hex())["signature"]
        assert "0x" + segment["signature"] == wanted, (segment, wanted)
    return [segment["signature"] for segment in segments]


def post(town, bundle, key):
    commit = town.start("honest", "prover", "commit", bundle, "--ledger",
                        town.place["LOCKSTEP_LEDGER"], "--job-key", key, "--poll", "1s")
    town.until(lambda: commit.code() == 0, "all is committed")
    assert town.count("committed", key) == SEGMENTS


def a_key_and_a_signature_are_good_on_one_ledger():
    with Town(PEOPLE) as town:
        job = town.new_job("a.job")
        bundle = town.train("honest", job, "a.run")
        key = open_on(town, job, False)
        post(town, bundle, key)
        signed = see_signatures(town, bundle, key, False)
        # Another ledger, with the same people, job and salt.
        town.run("nobody", "ledger", "init", town.path("another"))
        town.place["LOCKSTEP_LEDGER"] = "local:" + town.path("another")
        for who in PEOPLE:
            town.give(who, stage.PURSE)
        other = open_on(town, job, False)
        assert other != key
        post(town, bundle, other)
        assert not set(see_signatures(town, bundle, other, False)) & set(signed)


def the_same_on_a_chain():
    with Town(PEOPLE, on_chain=True) as town:
        job = town.new_job("a.job")
        bundle = town.train("honest", job, "a.run")
        key = open_on(town, job, True)
        post(town, bundle, key)
        signed = see_signatures(town, bundle, key, True)
        # Another registry of the same chain.
        made = town.ask("client", "ledger", "deploy", "--name", "second", "--timeout", "4m")
        town.place.update({"LOCKSTEP_REGISTRY": made["registry"],
                           "LOCKSTEP_FIRST_BLOCK": str(made["first_block"])})
        other = open_on(town, job, True)
        assert other != key
        post(town, bundle, other)
        assert not set(see_signatures(town, bundle, other, True)) & set(signed)


TESTS = [a_key_and_a_signature_are_good_on_one_ledger]
sys.exit(stage.main(TESTS, [the_same_on_a_chain]))
