"""Goal: a report can be cited: the text, the page and the JSON name the job's title, model,
hyperparameters, roots and held-out figures, and not a byte can be changed. Programs read JSON alone, and
no terminal is steered by what a stranger wrote.
Method: runs the built program on a small job with held-out data and a title that a page must not
believe; the figures against the journal and the last checkpoint; every byte of a field changed."""

import json
import os
import shutil
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../../support")]
sys.dont_write_bytecode = True

from program import DATA, ask, call, main, new_job, path  # noqa: E402

TITLE = "Villages <b>&'\""


def prepare():
    with open(DATA, "rb") as file:
        held = file.read(3000)
    with open(path("held.u8"), "wb") as file:
        file.write(held)
    new_job("a.job", "--eval", path("held.u8"), "--eval-every", "5", "--eval-batches", "2",
            "--title", TITLE, "--rate", "0.002", "--decay", "0.05", "--seed", "4")
    ask("prover", "run", path("a.job"), "--data", DATA, "--data", path("held.u8"), "--bundle",
        path("a.run"), "--threads", "1")


def last_figure():
    with open(path("a.run/checkpoints/000000000012.safetensors"), "rb") as file:
        whole = file.read()
    size, = struct.unpack("<Q", whole[:8])
    begin, end = json.loads(whole[8:8 + size])["held_out.loss"]["data_offsets"]
    return struct.unpack("<f", whole[8 + size + begin:8 + size + end])[0]


def the_json_says_all_that_a_citation_needs():
    prepare()
    call("audit", path("a.run"), "--report", path("a.json"))
    with open(path("a.json"), encoding="ascii") as file:
        report = json.load(file)
    audit, = report["audits"]
    job, facts = audit["job"], audit["job"]["facts"]
    assert report["date"] and report["version"] and audit["result"]["answer"] == "proven"
    assert job["title"] == TITLE and job["model"] == "gpt2, 1 layer, width 8"
    assert (facts["optimizer"], facts["batch"], facts["length"]) == ("adamw", 1, 4)
    assert abs(facts["rate_most"] - 0.002) < 1e-9 and abs(facts["decay"] - 0.05) < 1e-8
    assert facts["tokens"] == 12 * 4 and len(job["data"]) == 2
    steps = ask("bundle", "steps", path("a.run"))["steps"]
    assert [step["step"] for step in steps if step["held_out_loss"] is not None] == [7, 11]
    assert audit["held_out"]["after_steps"] == 12 and "accuracy" not in audit["held_out"]
    assert audit["held_out"]["loss"] == steps[-1]["held_out_loss"] == last_figure()
    assert audit["final_state_root"] == steps[-1]["state_root"]
    assert "ledger" not in audit and not any("never saw" in text for text in audit["not_checked"])


def the_text_and_the_page_say_the_same():
    said = call("audit", "--verify-report", path("a.json"), wanted=2).stdout.decode()  # not signed
    call("audit", path("a.run"), "--report", path("a.html"))
    with open(path("a.html"), encoding="utf-8") as file:
        page = file.read()
    assert TITLE in said and TITLE not in page and "<b>&" not in page
    assert "Villages &#60;b&#62;&#38;&#39;&#34;</td>" in page
    for label, value in (("Model", "gpt2, 1 layer, width 8"), ("Optimizer", "adamw"),
                         ("Learning rate, highest", "0.002"), ("Weight decay", "0.05"),
                         ("Held-out loss", "%.7g" % last_figure()), ("Held out after steps", "12")):
        assert ">%s</th><td class=\"own\">%s</td>" % (label, value) in page, label
        assert any(line.split() == (label + " " + value).split() for line in said.splitlines())


def figures_of_steps_that_were_not_run_are_the_solvers_words():
    """Of 3 segments one is run again; the last look is of the last."""
    seen = set()
    for seed in range(1, 9):
        call("audit", path("a.run"), "--sample", "1", "--sample-seed", str(seed), "--report", path("some.json"))
        call("audit", path("a.run"), "--sample", "1", "--sample-seed", str(seed), "--report", path("some.html"))
        with open(path("some.json"), encoding="ascii") as file:
            audit, = json.load(file)["audits"]
        with open(path("some.html"), encoding="utf-8") as file:
            page = file.read()
        told = "held_out_told" in audit
        figures = audit["held_out_told" if told else "held_out"]
        assert figures["loss"] == last_figure() and ("held_out" in audit) != told, audit
        assert any("not all of the steps that give them" in text for text in audit["not_checked"]) == told
        assert (">Held-out loss, says the solver</th>" in page) == told
        assert (">Held-out loss</th>" in page) != told
        seen.add(told)
    assert seen == {False, True}


def alone(*words, wanted=0):
    """With --json one line comes on stdout; progress goes to stderr."""
    said = call(*words, "--json", wanted=wanted)
    lines = said.stdout.decode().splitlines()
    assert len(lines) == 1 and lines[0].isascii(), (words, said.stdout)
    return json.loads(lines[0])


def json_is_alone_on_stdout():
    call("prover", "run", path("a.job"), "--data", DATA, "--data", path("held.u8"), "--bundle", path("false.run"),
         "--threads", "1", "--falsify", "7", "--offline")
    both = alone("audit", path("a.run"), path("false.run"), "--evidence-folder", path(""), wanted=1)["audits"]
    assert [one["answer"] for one in both] == ["proven", "refuted"], both
    for more in (["--report", path("c.html")], ["--report", path("c.json")], ["--workers", "2"], ["--sample", "1"]):
        (one,) = alone("audit", path("a.run"), *more)["audits"]
        assert one["answer"] == "proven", one
    (one,) = alone("audit", path("none.run"), wanted=2)["audits"]
    assert one["answer"] == "cannot-tell" and "none.run" in one["reason"], one
    assert alone("audit", "--verify-report", path("c.json"), wanted=2)["reports"]
    assert alone("audit", "--verify-evidence", both[1]["evidence"]["file"], wanted=1)
    # For people each bundle comes as it ends, and nothing of JSON.
    said = call("audit", path("a.run"), path("false.run"), "--evidence-folder", path(""), wanted=1).stdout.decode()
    assert path("a.run") + ": proven\n" in said and path("false.run") + ": refuted\n" in said, said
    assert "  12 of 12 steps were run again and gave the same bits\n" in said and '"answer"' not in said, said


def no_name_of_a_stranger_steers_a_terminal():
    name = path("odd\x1b[2J.run")
    shutil.copytree(path("a.run"), name)
    said = call("audit", name)
    assert b"\x1b" not in said.stdout + said.stderr, said.stdout
    assert b"odd\\u001b[2J.run: proven\n" in said.stdout, said.stdout


def what_is_not_so_written_is_refused():
    with open(path("a.json"), "rb") as file:
        whole = file.read()
    for field in (b'"held_out"', b'"title"', b'"rate_most"', b'"final_state_root"', b'"after_steps"'):
        at = whole.index(field)
        with open(path("b.json"), "wb") as file:  # other keys, or no canonical text
            file.write(whole[:at] + whole[at:].replace(field + b": ", field + b":", 1))
        call("audit", "--verify-report", path("b.json"), wanted=1)
    # A job without a ledger, of which the bundle lacks its last checkpoint, has no figure.
    os.remove(path("a.run/checkpoints/000000000012.safetensors"))
    call("audit", path("a.run"), "--report", path("c.json"), wanted=2)
    with open(path("c.json"), encoding="ascii") as file:
        audit, = json.load(file)["audits"]
    assert "held_out" not in audit and any("never saw" in text for text in audit["not_checked"])


sys.exit(main([
    the_json_says_all_that_a_citation_needs,
    the_text_and_the_page_say_the_same,
    figures_of_steps_that_were_not_run_are_the_solvers_words,
    json_is_alone_on_stdout,
    no_name_of_a_stranger_steers_a_terminal,
    what_is_not_so_written_is_refused,
]))
