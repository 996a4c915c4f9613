#!/usr/bin/env python3
"""Plants faults in the PTX of kernels, one at a time, and demands that each is caught.

usage: planted.py BUILD CC CFLAGS... -- LINK...

Each fault changes one instruction of one kernel, as a compiler's or a writer's mistake would. The
kernel is translated and compiled again and the self-test of its variant runs with it. The fault is
caught where the self-test fails, the emulator ends the program, or the translator refuses it by
name. A fault whose place is not found, and a sound kernel that fails, fail the check.
"""
import os
import re
import subprocess
import sys
import tempfile

EVERY = 0

# Kernel, variant, capability, what it is, which occurrence, pattern, replacement.
FAULTS = [
    ("kernel_hopper_narrow_half", "wgmma", 90, "descriptors swapped", 1,
     r"(wgmma\.mma_async[^;]*\}, )(%rd\d+), (%rd\d+), p;", r"\1\3, \2, p;"),
    ("kernel_hopper_narrow_half", "wgmma", 90, "two accumulators swapped in the second product", 2,
     r"(wgmma\.mma_async[^;{]*\{)(%r\d+), (%r\d+),", r"\1\3, \2,"),
    ("kernel_hopper_narrow_half", "wgmma", 90, "signed taken for unsigned", 1,
     r"(wgmma\.mma_async\.sync\.aligned\.m64n64k32\.s32)\.s8\.s8", r"\1.u8.s8"),
    ("kernel_hopper_narrow_half", "wgmma", 90, "a copy of fewer bytes than are awaited", 1,
     r"(mbarrier\.expect_tx[^;]*\], )(%r\d+);", r"\g<1>1616;"),
    ("kernel_hopper_narrow_half", "wgmma", 90, "a sum that is raised by one bit less", 1,
     r"(shl\.b32 \t%r\d+, %r\d+, )7;", r"\g<1>6;"),
    ("kernel_hopper_narrow_half", "wgmma", 90, "no fence before products", 1,
     r"wgmma\.fence\.sync\.aligned;", ""),
    ("kernel_hopper_narrow_half", "wgmma", 90, "products that are not awaited", 1,
     r"wgmma\.commit_group\.sync\.aligned;", ""),
    ("kernel_contract_three", "mma", 80, "operands of a product in another order", 1,
     r"(mma\.sync[^;{]*\{[^}]*\}, \{)(%r\d+), (%r\d+),", r"\1\3, \2,"),
    ("kernel_contract_three", "mma", 80, "accumulators that are not the result's", 1,
     r"(mma\.sync[^;{]*\{)(%r\d+), (%r\d+)(, [^;]*;)", r"\1\3, \2\4"),
    ("kernel_contract_three", "mma", 80, "rows of a fragment from another place", 1,
     r"(ldmatrix[^;]*\[%r\d+)\]", r"\1+16]"),
    ("kernel_contract_three", "mma", 80, "reads that do not wait for their copies", EVERY,
     r"cp\.async\.wait_group \d;", ""),
    ("kernel_halves_long", "half", 80, "halves that are added in place of subtracted", 1,
     r"sub\.rn\.f16x2", "add.rn.f16x2"),
    ("kernel_halves_long", "half", 80, "operands of a product of halves in another order", 1,
     r"(mma\.sync\.aligned\.m16n8k16[^;{]*\{[^}]*\}, \{)(%r\d+), (%r\d+),", r"\1\3, \2,"),
    ("kernel_dots", "dots", 80, "a subtraction the other way round", 1,
     r"(shfl\.sync\.(?:bfly|down)\.b32 \t%r\d+\|%p\d+, %r\d+, )%r\d+", r"\g<1>3"),
    ("kernel_dots", "dots", 80, "an inverted predicate", 2, r"@(%p\d+ bra)", r"@!\1"),
    ("kernel_contract_plain", "plain", 80, "a bound that is one off", 1,
     r"setp\.lt\.u32", "setp.le.u32"),
    ("kernel_contract_plain", "plain", 80, "a store outside of the tensor", 1,
     r"(st\.global\.[uf]32 \t\[%rd\d+)(?:\+\d+)?\]", r"\1+1073741824]"),
    ("kernel_contract_plain", "plain", 80, "a load that is not aligned", 1,
     r"(ld\.global\.[ufs](?:32|16) \t%\w+, \[%rd\d+)(?:\+\d+)?\]", r"\1+1]"),
    ("kernel_held", "held", 80, "a multiplication taken for an addition", 1,
     r"mul\.rn\.f32", "add.rn.f32"),
    ("kernel_dots", "dots", 80, "an instruction that nobody knows", 1, r"add\.s64", "lop3.s64"),
]


def body_of(text, kernel):
    start = text.index(f".visible .entry {kernel}(")
    end = text.find(".visible .entry", start + 1)
    return start, end if end > 0 else len(text)


def alone(text, kernel):
    """The module with this kernel and no other: what stands before all kernels, and behind them."""
    start, end = body_of(text, kernel)
    behind = text.find("\n.func ", text.rindex(".visible .entry"))
    return text[:text.index(".visible .entry")] + text[start:end].split("\n.func ")[0] + (
        text[behind:] if behind > 0 else "")


def plant(text, kernel, occurrence, pattern, replacement):
    start, end = body_of(text, kernel)
    at = list(re.finditer(pattern, text[start:end]))
    if at and occurrence == EVERY:
        return text[:start] + re.sub(pattern, replacement, text[start:end]) + text[end:]
    if len(at) < occurrence or not at:
        return None
    match = at[occurrence - 1]
    changed = re.sub(pattern, replacement, match[0])
    return text[:start + match.start()] + changed + text[start + match.end():]


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False, **more)


class Check:
    def __init__(self, build, compiler, flags, link):
        self.build, self.compiler, self.flags, self.link = build, compiler, flags, link
        self.texts = {}

    def text(self, kernel):
        name = "hopper" if kernel.startswith("kernel_hopper") else "kernels"
        if name not in self.texts:
            with open(f"{self.build}/ptx/{name}.ptx", encoding="ascii") as file:
                self.texts[name] = file.read()
        return name, self.texts[name]

    def outcome(self, kernel, variant, capability, text):
        """("refused", why), ("caught", how), ("missed", "") or ("broken", why)."""
        name, _ = self.text(kernel)
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/{name}.ptx", "w", encoding="ascii") as file:
                file.write(alone(text, kernel))
            made = run([sys.executable, "tests/ptx/translate.py", f"{folder}/{name}.ptx", folder, name, kernel])
            if made.returncode != 0:
                return ("refused", made.stdout.strip()) if "not known here" in made.stdout else ("broken", made.stdout)
            made = run([self.compiler, *self.flags, "-c", "-o", f"{folder}/kernel.o", f"{folder}/{kernel}.c"])
            if made.returncode != 0:
                return "broken", made.stdout[-500:]
            made = run([self.compiler, "-o", f"{folder}/proof", f"{folder}/kernel.o", *self.link])
            if made.returncode != 0:
                return "broken", made.stdout[-500:]
            try:
                ran = run([f"{folder}/proof", variant, str(capability)], timeout=300)
            except subprocess.TimeoutExpired:
                return "caught", "it does not end"
            last = (ran.stdout.strip().splitlines() or [""])[-1]
            return ("missed", "") if ran.returncode == 0 else ("caught", last)


def main():
    at = sys.argv.index("--")
    check = Check(sys.argv[1], sys.argv[2], sys.argv[3:at], sys.argv[at + 1:])
    wanted = os.environ.get("PTX_PLANTED", "")
    caught = failed = 0
    for kernel, variant, capability in sorted({fault[:3] for fault in FAULTS if wanted in fault[0]}):
        verdict, why = check.outcome(kernel, variant, capability, check.text(kernel)[1])
        if verdict != "missed":
            failed += 1
            print(f"not ok - {kernel} without a fault: {verdict}: {why}")
    for kernel, variant, capability, what, occurrence, pattern, replacement in FAULTS:
        if wanted not in kernel:
            continue
        text = plant(check.text(kernel)[1], kernel, occurrence, pattern, replacement)
        verdict, why = ("broken", "no such place") if text is None else check.outcome(kernel, variant, capability, text)
        good = verdict in ("caught", "refused")
        caught += good
        failed += not good
        print(f"{'ok' if good else 'not ok'} - {kernel}: {what}: {verdict}: {why}", flush=True)
    print(f"planted: {caught} faults caught, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
