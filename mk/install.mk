# install.mk - puts the program, its manual page and its completion where PREFIX and DESTDIR say.

bin_dir = $(DESTDIR)$(PREFIX)/bin
lib_dir = $(DESTDIR)$(PREFIX)/lib/lockstep
man_dir = $(DESTDIR)$(PREFIX)/share/man/man1
completion_dir = $(DESTDIR)$(PREFIX)/share/bash-completion/completions

install: $(BUILD)/lockstep $(cuda_plugin) ## install below PREFIX=/usr/local
	install -d $(bin_dir) $(man_dir) $(completion_dir)
	install -m 755 $(BUILD)/lockstep $(bin_dir)/lockstep
	$(BUILD)/lockstep help --man > $(man_dir)/lockstep.1
	$(BUILD)/lockstep help --completion > $(completion_dir)/lockstep
	$(if $(cuda_plugin),install -d $(lib_dir) && install -m 755 $(cuda_plugin) $(lib_dir)/)

uninstall: ## remove what install put there
	rm -f $(bin_dir)/lockstep $(man_dir)/lockstep.1 $(completion_dir)/lockstep
	rm -f $(lib_dir)/lockstep_cuda.so
	if [ -d $(lib_dir) ]; then rmdir $(lib_dir); fi

.PHONY: install uninstall
