"""Goal: the scripts that make seeds of fuzz targets make those that are here.
Method: they are run on a copy, and each file that they write is compared."""

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.dont_write_bytecode = True

import tap  # noqa: E402

SCRIPTS = ("make_proofs.py", "make_wires.py")


def scripts_make_the_seeds_that_are_here():
    folder = tempfile.mkdtemp(prefix="lockstep-test-")
    try:
        for script in SCRIPTS:
            shutil.copy("fixtures/corpus/" + script, folder)
            subprocess.run([sys.executable, os.path.join(folder, script)], check=True)
        made = [os.path.relpath(os.path.join(where, name), folder)
                for where, _, names in os.walk(folder) for name in names if name not in SCRIPTS]
        assert len(made) > 50, made
        other = [name for name in made
                 if not filecmp.cmp(os.path.join(folder, name),
                                    os.path.join("fixtures/corpus", name), shallow=False)]
        assert other == [], other
    finally:
        shutil.rmtree(folder)


sys.exit(tap.run([scripts_make_the_seeds_that_are_here]))
