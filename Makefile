# sluice: an LLM gateway inside the web server you already have. `make help` lists the targets.

B ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
VERSION := 0.1.0

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
LDFLAGS += $(foreach f,$(HARD_LINK),$(call trylink,$(f)))
LIBS := -lfcgi -lcurl -ljson-c -llmdb -lssl -lcrypto -lpthread

SRC := $(sort $(wildcard store/*.c fcgi_app/*.c fcgi_app/*/*.c))
OBJ := $(SRC:%.c=$(B)/%.o)
MAIN_OBJ := $(B)/fcgi_app/main.o $(B)/fcgi_app/ctl/ctl.o
LIB_OBJ := $(filter-out $(MAIN_OBJ),$(OBJ))
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
UNIT := $(UNIT_SRC:tests/unit/%.c=$(B)/unit/%)

.PHONY: all
all: $(B)/sluice.fcgi $(B)/sluicectl

$(B)/sluice.fcgi: $(B)/fcgi_app/main.o $(B)/libsluice.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/sluicectl: $(B)/fcgi_app/ctl/ctl.o $(B)/libsluice.a
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/libsluice.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/unit/%: tests/unit/%.c $(B)/libsluice.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests -MMD -MP -o $@ $< $(wildcard tests/lib/*.c) $(B)/libsluice.a $(LDFLAGS) -lcmocka $(LIBS)

.PHONY: unit
unit: $(UNIT)
	CMOCKA_MESSAGE_OUTPUT=TAP prove -j2 -e '' $(UNIT)

-include $(OBJ:.o=.d) $(UNIT:=.d)
