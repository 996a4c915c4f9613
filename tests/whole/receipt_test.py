"""Goal: on a ledger an answer's receipt is an ordinary job of one step. Of a true one the root that is
committed is the one that `job new` names; who says that a false one holds is convicted, and the honest
solver beside it is paid.
Method: a small Llama, an answer with a receipt, and the same with another last token: one condition
less holds. The cheat adds it to "held". Client, solvers and a node are real programs, on the embedded
ledger and on anvil; the money of everybody is compared, on the embedded ledger to the wei."""

import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../support")]
import tiny_llama  # noqa: E402
import town as stage  # noqa: E402

# A job of one segment, whose data are a model's folder.
stage.SEGMENTS, stage.FEE = 1, stage.REWARD // 10
stage.BOND = 10 * stage.FEE
FOLDER = tempfile.TemporaryDirectory(prefix="lockstep-test-")
MODEL = os.path.join(FOLDER.name, "model")
stage.DATA = os.path.join(MODEL, "model.safetensors")
import plays  # noqa: E402
from plays import PEOPLE  # noqa: E402
from town import ETHER, Town  # noqa: E402

GAS = ETHER // 5
HELD = 2 * 12  # of twelve tokens at temperature 0


def receipts(town):
    """Of a true answer, and of one that the model does not give."""
    true, false = town.path("true.receipt"), town.path("false.receipt")
    said = town.ask("client", "generate", MODEL, "--tokenizer", "bytes", "--prompt", "The village",
                    "--tokens", "12", "--temperature", "0", "--prove", true)
    assert len(said["tokens"]) == 12, said
    with open(true, encoding="ascii") as file:
        claim = json.load(file)
    claim["tokens"][-1] ^= 1
    with open(false, "w", encoding="ascii") as file:
        file.write(json.dumps(claim, sort_keys=True, separators=(",", ":")) + "\n")
    return true, false


def order(town, receipt, name):
    made = town.ask("client", "job", "new", "--receipt", receipt, "--base", MODEL, "--out",
                    town.path(name))
    assert made["conditions"] == HELD, made
    return town.path(name), made["proven_root"]


def a_true_one_has_the_root_that_is_named(town, receipt):
    job, proven = order(town, receipt, "true.job")
    run = town.train("client", job, "true.run")
    assert town.roots(run) == [proven]
    (audit,) = town.ask("client", "audit", run, "--data", stage.DATA)["audits"]
    assert audit["answer"] == "proven", audit


def play(on_chain, gas):
    with Town(PEOPLE, on_chain=on_chain) as town:
        true, false = receipts(town)
        a_true_one_has_the_root_that_is_named(town, true)
        job, proven = order(town, false, "false.job")
        keys = {who: town.open_job(job) for who in ("honest", "cheat")}
        for who, more in (("honest", ()), ("cheat", ("--falsify", "0"))):
            town.solve(who, job, keys[who], *more)
        for key in keys.values():
            town.until_count(1, "committed", key)
        roots = {who: town.roots(town.path(who + ".run")) for who in ("honest", "cheat")}
        assert roots["cheat"] == [proven] != roots["honest"], roots
        _, url = town.serve("cheat", town.path("cheat.run"))
        node = town.verifier("--mirror", town.path("honest.run"), "--mirror", url)
        plays.pass_sealing(town)
        town.until_count(1, "convicted", keys["cheat"])
        (claim,) = town.events("claimed", keys["cheat"])
        assert claim["account"] == town.people["verifier"] and claim["segment"] == 0, claim
        plays.see_pay(town, keys["honest"], node)
        plays.see_money(town, keys, gas)
        assert node.stop() == 0, node.said()


def a_false_held_is_convicted():
    play(False, 0)


def the_same_on_a_chain():
    play(True, GAS)


tiny_llama.write(MODEL, num_hidden_layers=1)
TESTS = [a_false_held_is_convicted]
sys.exit(stage.main(TESTS, [the_same_on_a_chain]))
