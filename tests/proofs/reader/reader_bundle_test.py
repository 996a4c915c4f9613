"""Goal: docs/FORMATS.md says enough to judge a run. Method: reader_bundle.py, which knows nothing
else, makes the ids and roots of fixtures/bundle again from the data, the job, the journal and the
checkpoint, accepts the openings and refuses all of them with any byte changed."""

import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../support")]
sys.dont_write_bytecode = True

import reader  # noqa: E402
import reader_bundle  # noqa: E402
import tap  # noqa: E402

FIXTURES = os.path.join(HERE, "../../../fixtures")


def load(name):
    with open(os.path.join(FIXTURES, name), "rb") as file:
        return file.read()


JOB = load("bundle/job")
TRACE = json.loads(load("bundle/trace.json"))
SEGMENTS = json.loads(load("bundle/segments.json"))["segments"]


def refused(function, *arguments):
    try:
        function(*arguments)
    except (reader.Refused, KeyError, ValueError):
        return True
    return False


def each_change(data, step=1):
    for at in range(0, len(data), step):
        yield data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:]
    yield data[:-1]
    yield data + b"\x00"


def job_roots_and_its_first_state_are_recomputed():
    job = reader_bundle.read_job(JOB)
    assert job.steps == 10 and job.segment == 4
    assert job.items == TRACE["items"] and len(job.states) == TRACE["states"]
    data = load("text/village.u8")
    tensor, = job.data_tensors
    assert reader.tensor_root("data", tensor.dtype, tensor.dims, "", data) == job.data_roots[0]


def program_of_micro_batches_is_recomputed():
    data = load("bundle/repeat.job")
    job = reader_bundle.read_job(data)
    assert job.repeat.times == 8 and job.repeat.groups == 4
    assert job.items == json.loads(load("bundle/repeat.json"))["items"]
    at = 224 + struct.unpack_from(">Q", data, 216)[0]
    for place in range(at - 20 - 9 * len(job.repeat.carries), at):  # what stands behind the states
        for bit in (0, 7):
            changed = data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1:]
            changed = (changed[:88] + reader.sha256(changed[216:]) + changed[120:])
            assert refused(reader_bundle.read_job, changed), place


def changed_jobs_are_refused_or_other_jobs():
    job = reader_bundle.read_job(JOB)
    for at, changed in enumerate(each_change(JOB[:216])):
        changed += JOB[216:]
        assert (refused(reader_bundle.read_job, changed)
                or reader_bundle.read_job(changed).id != job.id), at
    for changed in each_change(JOB[216:], 97):
        assert refused(reader_bundle.read_job, JOB[:216] + changed)


def segment_roots_are_recomputed_from_the_journal():
    job = reader_bundle.read_job(JOB)
    roots, losses, signed = reader_bundle.read_journal(load("bundle/journal"), job)
    assert len(roots) == len(losses) == 10 and signed == []
    for segment in SEGMENTS:
        root = reader_bundle.segment_root(job, roots, segment["segment"])
        assert root.hex() == segment["root"]
    assert roots[8].hex() == TRACE["state_root_before"]
    assert roots[9].hex() == TRACE["state_root_after"]


def state_root_is_recomputed_from_the_checkpoint():
    job = reader_bundle.read_job(JOB)
    data = load("bundle/checkpoint.safetensors")
    roots, _, _ = reader_bundle.read_journal(load("bundle/journal"), job)
    assert reader_bundle.read_checkpoint(data, job) == roots[9]
    start = len(data) - 20000  # behind the header
    for at in range(start, len(data), 611):
        changed = data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]
        assert reader_bundle.read_checkpoint(changed, job) != roots[9]


def openings_are_accepted_and_changed_ones_prove_nothing_else():
    root = bytes.fromhex(TRACE["trace_root"])
    for name, item, element in (("state", 1, 777), ("output", None, 3), ("step", 0, 0)):
        data = load("bundle/%s.opening" % name)
        got = reader_bundle.open_element(data, root, TRACE["items"])
        assert got[1] == element and (item is None or got[0] == item)
        assert name != "step" or got[2] == 9
        assert refused(reader_bundle.open_element, data, root, TRACE["items"] + 1)
        assert refused(reader_bundle.open_element, data, root[::-1], TRACE["items"])
        for changed in each_change(data):
            if not refused(reader_bundle.open_element, changed, root, TRACE["items"]):
                # Another element of the same leaf: it proves another value.
                other = reader_bundle.open_element(changed, root, TRACE["items"])
                assert other[0] == got[0] and other[1] != got[1]


TESTS = [
    program_of_micro_batches_is_recomputed,
    job_roots_and_its_first_state_are_recomputed,
    changed_jobs_are_refused_or_other_jobs,
    segment_roots_are_recomputed_from_the_journal,
    state_root_is_recomputed_from_the_checkpoint,
    openings_are_accepted_and_changed_ones_prove_nothing_else,
]


sys.exit(tap.run(TESTS))
