#!/bin/sh
# Goal: the PTX that nvcc makes of kernels gives the bits of the rules, and nothing that the translator does not know passes
# for known. `make ptxcheck` does it for all kernels, with faults planted; this is a share of it.
# Method: self-tests of variants whose kernels are made in seconds, on the emulated device; PTX with a line that is none.
# Prints TAP.
set -u

. tests/support/tap.sh

cat >"$dir/small.ptx" <<'END'
.version 9.0
.target sm_80
.address_size 64
.visible .entry kernel_small(
	.param .u32 kernel_small_param_0
)
{
	.reg .b32 	%r<4>;
	ld.param.u32 	%r1, [kernel_small_param_0];
	add.s32 	%r2, %r1, 1;
	ret;
}
END
said=$(python3 tests/ptx/translate.py "$dir/small.ptx" "$dir" small 2>&1)
result "$(
    [ "$said" = "small: 1 kernels, 3 instructions" ] && grep -q "^v_r2\|_r2 = (uint32_t)" "$dir/kernel_small.c"
    echo $?
)" "instructions that are known become C"
refuses() { # NAME FROM TO
    sed "s/$2/$3/" "$dir/small.ptx" >"$dir/other.ptx"
    said=$(python3 tests/ptx/translate.py "$dir/other.ptx" "$dir" other 2>&1)
    result "$([ $? = 1 ] && printf '%s\n' "$said" | grep -qF "kernel_small: not known here: $4" && echo 0 || echo 1)" "$1"
}
refuses "an instruction that is not known is refused by name" "add.s32" "lop3.b32" "the instruction lop3.b32"
refuses "a form that is not known is refused by name" "add.s32" "add.sat.s32" "the form add.sat.s32"
refuses "an operand that nobody declared is refused by name" "%r1, 1;" "%r9, 1;" "the operand %r9"
refuses "a register of another width is refused by name" "%r1, 1;" "%rd1, 1;" "the operand %rd1"

share=$TEST_BUILD/ptx/ptx-share
if [ ! -x "$share" ]; then
    skip "kernels that nvcc made" "there is no nvcc here"
    finish
fi
for variant in plain dots held lists columns; do
    said=$("$share" "$variant" 80 2>&1)
    result "$?" "the kernels of $variant, as nvcc made them, give the bits of the rules"
done
finish
