"""Goal: every command of docs/FINETUNE.md does what the page promises.
Method: the commands as the page has them, in their order, in a folder with a small Llama."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../client"), os.path.join(HERE, "../support")]
sys.dont_write_bytecode = True

import job_base_test as small  # noqa: E402

LOCKSTEP = os.path.abspath(os.environ["TEST_LOCKSTEP"])
PAGE = "docs/FINETUNE.md"


def commands():
    """Indented lines that begin with the program; a backslash joins lines."""
    with open(PAGE, encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    return re.findall(r"^    (lockstep .*)$", text, re.MULTILINE)


def prepare(folder):
    base = small.folder("base", shards=small.halves())
    shutil.move(base, os.path.join(folder, "base"))
    with open(small.DATA, "rb") as file:
        text = file.read(20000)
    with open(os.path.join(folder, "tokens.u8"), "wb") as file:
        file.write(text)
    with open(os.path.join(folder, "mask.u8"), "wb") as file:
        file.write(bytes(byte == 0x20 for byte in text))


def run(command, folder):
    words = shlex.split(command)
    done = subprocess.run([LOCKSTEP, *words[1:]], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, (command, done.stderr[-400:])
    return done.stdout.decode(errors="replace")


def losses(folder, bundle):
    done = subprocess.run([LOCKSTEP, "bundle", "steps", bundle, "--json"], cwd=folder,
                          stdout=subprocess.PIPE, check=True)
    return [step["loss"] for step in json.loads(done.stdout)["steps"]]


def page_is_true(folder):
    said = {command: run(command, folder) for command in commands()}
    assert len(said) >= 10, len(said)
    for name, files in (("adapter", {"adapter_config.json", "adapter_model.safetensors"}),
                        ("tuned", {"config.json", "model.safetensors"}),
                        ("full", {"config.json", "model.safetensors"})):
        assert set(os.listdir(os.path.join(folder, name))) == files | {"README.md"}, name
    sizes = [os.path.getsize(os.path.join(folder, run_name, "checkpoints", "%012d.safetensors" % 4))
             for run_name in ("tune.run", "full.run")]
    assert sizes[0] < sizes[1] / 3, sizes  # adapters alone
    told = [text for command, text in said.items() if " generate " in command]
    assert len(told) == 3 and all(len(text) > 10 for text in told), told
    assert ": proven\n" in said["lockstep audit answer.receipt --base tuned"]
    assert losses(folder, "answer.run") == [0.0]  # no condition is missing
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
        shutil.rmtree(small.path(""), ignore_errors=True)


sys.exit(main())
