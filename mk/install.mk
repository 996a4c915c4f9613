# install.mk - puts the program, its manual pages, completions, services and documents where PREFIX
# and DESTDIR say, and packs them for Debian.

bin_dir = $(DESTDIR)$(PREFIX)/bin
lib_dir = $(DESTDIR)$(PREFIX)/lib/lockstep
share_dir = $(DESTDIR)$(PREFIX)/share
man_dir = $(share_dir)/man/man1
doc_dir = $(share_dir)/doc/lockstep
bash_dir = $(share_dir)/bash-completion/completions
zsh_dir = $(share_dir)/zsh/site-functions
fish_dir = $(share_dir)/fish/vendor_completions.d
unit_dir = $(DESTDIR)$(PREFIX)/lib/systemd/system
sysusers_dir = $(DESTDIR)$(PREFIX)/lib/sysusers.d
tmpfiles_dir = $(DESTDIR)$(PREFIX)/lib/tmpfiles.d
units := lockstep-verifier.service lockstep-verifier-gpu.service lockstep-solver.service lockstep-solver-gpu.service \
    lockstep-keeper@.service lockstep-prover-serve@.service
documents := README.md CHANGELOG.md LICENSE $(wildcard docs/*.md docs/*.svg)
version := $(shell sed -n 's/^.define LOCKSTEP_VERSION "\(.*\)"/\1/p' base/version.h)

# What a program of C needs to write tapes (share/lockstep/wells.c): the builder, and what it stands on.
tape_rooms := base engine/ops engine/ops/spec engine/rules engine/tape
tape_objects := $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(addsuffix /*.c,$(tape_rooms))))
include_dir = $(DESTDIR)$(PREFIX)/include/lockstep
pc_dir = $(share_dir)/pkgconfig
$(BUILD)/liblockstep_tape.a: $(tape_objects)
	$(archive)

# The program tells its own pages and completions: it is run, by EMULATOR where it is another machine's.
install: $(BUILD)/lockstep $(BUILD)/liblockstep_tape.a $(cuda_here) ## install below PREFIX=/usr/local
	install -d $(bin_dir) $(man_dir) $(doc_dir)/examples $(bash_dir) $(zsh_dir) $(fish_dir) \
	    $(unit_dir) $(sysusers_dir) $(tmpfiles_dir)
	install -m 755 $(BUILD)/lockstep $(bin_dir)/lockstep
	$(EMULATOR) $(BUILD)/lockstep help --man-to $(man_dir)
	$(EMULATOR) $(BUILD)/lockstep help --completion --shell bash > $(bash_dir)/lockstep
	$(EMULATOR) $(BUILD)/lockstep help --completion --shell zsh > $(zsh_dir)/_lockstep
	$(EMULATOR) $(BUILD)/lockstep help --completion --shell fish > $(fish_dir)/lockstep.fish
	chmod 644 $(man_dir)/lockstep*.1 $(bash_dir)/lockstep $(zsh_dir)/_lockstep \
	    $(fish_dir)/lockstep.fish
	for unit in $(units); do \
	    sed 's|@BIN@|$(PREFIX)/bin|' packaging/$$unit > $(unit_dir)/$$unit && \
	    chmod 644 $(unit_dir)/$$unit || exit 1; done
	install -m 644 packaging/lockstep.sysusers $(sysusers_dir)/lockstep.conf
	install -m 644 packaging/lockstep.tmpfiles $(tmpfiles_dir)/lockstep.conf
	install -m 644 $(documents) packaging/grafana.json packaging/alerts.yml $(doc_dir)/
	install -d $(doc_dir)/history
	install -m 644 docs/history/*.md $(doc_dir)/history/
	install -m 644 packaging/examples/*.conf $(doc_dir)/examples/
	install -m 755 packaging/slurm/run.sh $(doc_dir)/examples/
	install -d $(share_dir)/lockstep
	install -m 644 share/lockstep/*.py share/lockstep/*.c $(share_dir)/lockstep/
	for room in $(tape_rooms); do install -d $(include_dir)/$$room && \
	    install -m 644 $$room/*.h $(include_dir)/$$room/ || exit 1; done
	install -d $(lib_dir) $(pc_dir)
	install -m 644 $(BUILD)/liblockstep_tape.a $(lib_dir)/
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(version)|' packaging/lockstep.pc > $(pc_dir)/lockstep.pc
	chmod 644 $(pc_dir)/lockstep.pc
	if [ -e $(cuda_plugin) ]; then install -d $(lib_dir) && install -m 755 $(cuda_plugin) $(lib_dir)/; fi

uninstall: ## remove what install put there
	rm -f $(bin_dir)/lockstep $(man_dir)/lockstep.1 $(man_dir)/lockstep-*.1
	rm -f $(bash_dir)/lockstep $(zsh_dir)/_lockstep $(fish_dir)/lockstep.fish
	rm -f $(addprefix $(unit_dir)/,$(units))
	rm -f $(sysusers_dir)/lockstep.conf $(tmpfiles_dir)/lockstep.conf
	rm -rf $(doc_dir) $(share_dir)/lockstep
	rm -f $(lib_dir)/lockstep_cuda.so $(lib_dir)/liblockstep_tape.a $(pc_dir)/lockstep.pc
	rm -rf $(include_dir)
	if [ -d $(lib_dir) ]; then rmdir $(lib_dir); fi

deb: | $(BUILD)/setup/deb.ok ## pack build/lockstep_VERSION_ARCHITECTURE.deb
	rm -rf $(BUILD)/deb
	+$(MAKE) --no-print-directory install DESTDIR=$(BUILD)/deb PREFIX=/usr
	scripts/deb $(BUILD)/deb $(BUILD) $(version)

container: $(BUILD)/lockstep ## the files of a container image in build/container; IMAGE=NAME builds it with buildah or podman
	scripts/container $(BUILD)/lockstep $(BUILD)/container $(IMAGE)

.PHONY: install uninstall deb container
