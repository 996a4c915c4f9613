"""Goal: every command of docs/FINETUNE.md does what the page promises: from conversations to an answer
and a certificate, and all that can be trained beside.
Method: the commands as the page has them, in their order, in a folder with a small Llama."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

import tiny_talk  # noqa: E402

LOCKSTEP = os.path.abspath(os.environ["TEST_LOCKSTEP"])
PAGE = "docs/FINETUNE.md"
TEXT = "fixtures/text/village.u8"


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def commands():
    """Indented lines but the example of a conversation; a backslash joins lines."""
    lines = re.findall(r"^    (.*)$", page().replace("\\\n", " "), re.MULTILINE)
    return [line for line in lines if not line.startswith("{")]


def prepare(folder):
    tiny_talk.write(os.path.join(folder, "base"), os.path.join(folder, "talk.jsonl"))
    with open(TEXT, "rb") as file:
        text = file.read(20000)
    with open(os.path.join(folder, "tokens.u8"), "wb") as file:
        file.write(text)
    with open(os.path.join(folder, "mask.u8"), "wb") as file:
        file.write(bytes(byte == 0x20 for byte in text))


def run(command, folder):
    path = os.path.dirname(LOCKSTEP) + ":" + os.environ["PATH"]
    done = subprocess.run(["bash", "-c", "set -o pipefail; " + command], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False,
                          env=dict(os.environ, PATH=path))
    assert done.returncode == 0, (command, done.stderr[-400:])
    return done.stdout.decode(errors="replace")


def losses(folder, bundle):
    done = subprocess.run([LOCKSTEP, "bundle", "steps", bundle, "--json"], cwd=folder,
                          stdout=subprocess.PIPE, check=True)
    return [step["loss"] for step in json.loads(done.stdout)["steps"]]


def the_certificate_is_whole(folder, said):
    """The answer was learned; all is proven, nothing is missing; openssl takes the signature."""
    def of(*words):
        return next(text for command, text in said.items() if all(word in command for word in words))

    assert of("generate", "--prove").startswith("Edda is the gardener."), of("generate", "--prove")
    certificate = of("--lineage", "--report")
    assert certificate.startswith("Lineage\nProven: "), certificate
    assert "Missing" not in certificate and "Held-out figures" in certificate, certificate
    for link in ("talk: 114 rows and 6 that are held out follow", "talk.run: stands on the weights of base",
                 "talk.run: reads the rows of talk", "talker: is what the state of talk.run after",
                 "answer.receipt: talker answered so"):
        assert "  " + link in certificate, (link, certificate)
    assert of("openssl dgst", "-verify") == "Verified OK\n"
    with open(os.path.join(folder, "statement.json"), encoding="utf-8") as file:
        names = {subject["name"] for subject in json.load(file)["subject"]}
    assert names >= {"talker/model.safetensors", "answer.receipt"}, names


def page_is_true(folder):
    said = {command: run(command, folder) for command in commands()}
    assert len(said) >= 30, len(said)
    the_certificate_is_whole(folder, said)
    beside = {"README.md", "tokenizer.json", "tokenizer_config.json"}
    for name, files in (("adapter", {"adapter_config.json", "adapter_model.safetensors"}),
                        ("tuned", {"config.json", "model.safetensors"}),
                        ("full", {"config.json", "model.safetensors"})):
        assert set(os.listdir(os.path.join(folder, name))) == files | beside, name
    sizes = [os.path.getsize(os.path.join(folder, run_name, "checkpoints", "%012d.safetensors" % 4))
             for run_name in ("tune.run", "full.run")]
    assert sizes[0] < sizes[1] / 3, sizes  # adapters alone
    told = [text for command, text in said.items() if " generate " in command]
    assert len(told) == 5 and all(len(text) > 10 for text in told), told
    assert ": proven\n" in said["lockstep audit village.receipt --base tuned"]
    assert losses(folder, "village.run") == [0.0]  # no condition is missing
    assert len(losses(folder, "tune.run")) == 12 and len(losses(folder, "test.run")) == 4


def main():
    folder = tempfile.mkdtemp(prefix="lockstep-test-")
    print("1..1")
    try:
        prepare(folder)
        page_is_true(folder)
        print("ok 1 - page_is_true")
        return 0
    except Exception as error:  # every surprise is a failure
        print("not ok 1 - page_is_true: %r" % error)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
