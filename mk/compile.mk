# compile.mk - how a file is compiled and linked: numerics, warnings, variants, what a recipe says.

# Numerics are protocol: no contraction, no fast math, under any CFLAGS.
NUMERICS := -ffp-contract=off -fno-fast-math
# Code that is sanitized, or optimized in another way than ours, is too twisted for these warnings of
# gcc; clang does not know the first.
gcc_only := $(if $(findstring clang,$(CC)),,-Wno-maybe-uninitialized -Wno-format-truncation)
level = $(lastword $(filter -O%,$(CFLAGS)))
WARNINGS = -Wall -Wextra -Wswitch-enum -Wstrict-prototypes -Wvla $(if $(WERROR),-Werror) \
    $(if $(filter -O2,$(level)),,$(gcc_only))
# A warning is an error where we know the compiler. What a later one has learnt to say is shown, and
# stops nobody from building. WERROR=1 or WERROR= decides for any.
known_gcc := 11 12 13 14
known_clang := 14 15 16 17 18 19
major = $(firstword $(subst ., ,$(shell $1 -dumpversion 2>/dev/null)))
known = $(filter $(known_$(if $(findstring clang,$1),clang,gcc)),$(call major,$1))
# What costs a process is asked for when it is first wanted, and then kept, for each compiler.
blank := $() $()
kept = kept_$(subst $(blank),_,$(CC))
WERROR ?= $(if $(filter undefined,$(origin $(kept))),$(eval $(kept) := $(call known,$(CC))))$($(kept))
ISA_avx2 := -mavx2 -mfma -mf16c -mbmi2
ISA_avx512 := $(ISA_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
ISA_i8mm := -march=armv8.2-a+dotprod+i8mm
ISA_armsha := -march=armv8-a+crypto
# What benchmarks are measured against; never for anything of ours.
ISA_fastmath := -O3 -march=native -ffast-math -ffp-contract=fast \
    $(if $(filter x86_64 amd64,$(MACHINE)),-mprefer-vector-width=512)
isa = $(foreach set,avx2 avx512 i8mm armsha fastmath,$(if $(filter %_$(set).c,$1),$(ISA_$(set))))
# A function without a prototype should be static; fuzz entry points are the exception.
prototypes = $(if $(filter tests/%,$<),,-Wmissing-prototypes)
# What stops a fault of memory from becoming somebody's code: tests/base/hardened_test.sh reads it in
# the program. The C library's own checks (FORTIFY) need optimization.
fortify = $(if $(filter-out -O0,$(level)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
on_x86 := $(filter x86_64 amd64,$(MACHINE))
on_arm := $(filter aarch64 arm64,$(MACHINE))
branches := $(if $(on_x86),-fcf-protection=full) $(if $(on_arm),-mbranch-protection=standard)
clash = $(if $(or $(on_x86),$(if $(findstring clang,$(CC)),,$(on_arm))),-fstack-clash-protection)
HARDENED = -fPIE -fstack-protector-strong $(clash) $(branches) $(fortify)
HARDENED_LINK := -Wl,-z,relro,-z,now
# The folder's name would stand in what is built: the same source gives the same bytes anywhere.
anywhere := -ffile-prefix-map=$(CURDIR)=.
ALL_CFLAGS = -std=c17 -D_GNU_SOURCE -I. $(anywhere) $(WARNINGS) $(prototypes) -fopenmp $(HARDENED) $(CFLAGS) $(variant) \
    $(NUMERICS)
# Debian 13's libscrypt does not say its own version. What was linked by the plain name would want the
# link of the development package wherever it runs.
scrypt = $(if $(filter undefined,$(origin $(kept)_scrypt)),$(eval $(kept)_scrypt := $(if $(findstring \
    /,$(shell $(CC) -print-file-name=libscrypt.so.0 2>/dev/null)),-l:libscrypt.so.0,-lscrypt)))$($(kept)_scrypt)
LDLIBS = -lcrypto -lcurl -lsqlite3 -ljansson -lsecp256k1 $(scrypt) -lmicrohttpd -lzstd -lz -ldl -lm

# A variant is a folder below build/ and the flags that make it different.
variant := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all)
# At -O1 loops stay loops, even where a pragma asks for vectors: clang need not say so.
sanitized := -O1 -U_FORTIFY_SOURCE -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-pass-failed
$(BUILD)/asan/%: variant := $(sanitized) $(gcc_only) -fsanitize=address,undefined
$(BUILD)/fuzz/%: variant := $(sanitized) -fsanitize=fuzzer-no-link,address,undefined
$(BUILD)/fuzz/%: CC := clang

say = $(if $(V),,@printf '  %-7s %s\n' $1 $2)
# The make that was called counts for those that it calls. (Its name is in no recipe: make would run
# a line that has it even when it is only asked what it would do.)
ifeq ($(if $(COUNTED_BY),$(filter-out 0,$(MAKELEVEL))),)
COUNTED_BY := $(shell echo $$PPID)
COUNTED := $(MAKE) $(MAKEOVERRIDES) $(MAKECMDGOALS)
endif
export COUNTED_BY COUNTED
define compile
@mkdir -p $(@D)
$(if $(V),,@scripts/progress $(BUILD) $(COUNTED_BY) $@ $(COUNTED))
$(Q)$(CC) $(ALL_CFLAGS) $(library_cflags) $(call isa,$<) -MMD -MP -c -o $@ $<
endef
define archive
@mkdir -p $(@D)
$(call say,AR,$@)
@rm -f $@
$(Q)$(AR) rcs $@ $^
endef
define link
@mkdir -p $(@D)
$(call say,LINK,$@)
$(Q)$(CC) $(ALL_CFLAGS) -pie $(HARDENED_LINK) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(extra_libs) $(LDLIBS)
endef
