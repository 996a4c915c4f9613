# arm.mk - the whole program for 64-bit ARM: cross-built against Debian's arm64 packages, run by
# qemu's emulation of three processors, and held to what this machine computes (scripts/arm).

arm_packages := libssl-dev libcurl4-openssl-dev libsqlite3-dev libjansson-dev libsecp256k1-dev libscrypt-dev \
    libmicrohttpd-dev libzstd-dev zlib1g-dev libgomp1 libcmocka-dev
arm_build := $(abspath $(BUILD))/arm
arm_root := $(arm_build)/sysroot
arm_roots := tests/arm/tape_roots
# What must pass there: in `make arm` the quick ones, in `make soak` all.
arm_quick := $(addprefix tests/,base/host_test engine/cpu/isa/isa_test proofs/hash/sha256_test \
    engine/cpu/elementwise_test engine/cpu/general_test)
arm_long := $(arm_quick) $(addprefix tests/engine/,cpu/contraction_kernels_test cpu/rows_test cpu/update_test \
    cpu/moving_test machine/machine_cpu_test machine/training_test)
arm_make = $(MAKE) --no-print-directory BUILD=$(arm_build) MACHINE=aarch64 CC=aarch64-linux-gnu-gcc \
    CFLAGS="-O2 --sysroot=$(arm_root)" EMULATOR="qemu-aarch64 -L $(arm_root)" SYSROOT=$(arm_root) \
    LOCKSTEP_NO_INSTALL=1

$(BUILD)/$(arm_roots): LDLIBS += -lcmocka
# A solver and an auditor start the program again: tests/arm/emulated.c.
arm_auditor := tests/arm/emulated
$(BUILD)/$(arm_auditor): LDFLAGS += -Wl,--wrap=execvp
$(BUILD)/$(arm_auditor): $(BUILD)/$(arm_auditor).o $(BUILD)/lockstep.o $(BUILD)/liblockstep.a
	$(link)

$(BUILD)/$(arm_roots): $(BUILD)/$(arm_roots).o $(BUILD)/tests/libsupport.a $(BUILD)/liblockstep.a
	$(link)

$(arm_root)/packages: scripts/arm-sysroot mk/arm.mk | $(BUILD)/setup/arm.ok
	$(Q)rm -rf $(arm_root)
	$(Q)scripts/arm-sysroot $(arm_root) $(arm_packages)

# SOAK=1: the long tests too, as make soak asks for.
arm: $(program) $(BUILD)/$(arm_roots) $(arm_root)/packages $(BUILD)/setup/deb.ok ## cross-build for 64-bit ARM and compare with this machine, under qemu
	+$(Q)$(arm_make) $(addprefix $(arm_build)/,lockstep $(arm_roots) $(arm_auditor) $(if $(SOAK),$(arm_long),$(arm_quick)))
	+$(Q)$(arm_make) deb
	$(Q)scripts/arm $(BUILD) fixtures $(if $(SOAK),$(arm_long),$(arm_quick))

arm-soak:
	+$(Q)SOAK_MINUTES=$(SOAK_MINUTES) $(MAKE) --no-print-directory arm SOAK=1
soak: arm-soak

.PHONY: arm arm-soak
