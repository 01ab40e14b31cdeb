/*
 * options - the one table of settings.
 *
 * A row: where it stands in the file, its type, bounds, default as text, one line of help, and where its value goes.
 * Rows of the sections upstream, pool, cooldown, breaker and channel_breaker go into a struct conf_policy and may also
 * stand in a channel. What stands in each channel, rule, account, model, target and name of models_file has a table of its
 * own, in the same form: see options_groups.
 *
 * Source    SPEC.md section 3
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include "base/buf.h"
#include "conf/conf.h"

enum option_type {
	OPTION_BOOL,     /* bool */
	OPTION_INT,      /* int64_t within min..max */
	OPTION_REAL,     /* double within min..max */
	OPTION_MICROS,   /* 0.0025 -> int64_t 2500, within min..max (in whole units) */
	OPTION_DURATION, /* "30s" -> int64_t ms */
	OPTION_SIZE,     /* "32M" -> int64_t bytes */
	OPTION_TEXT,     /* struct span; one of `choices` if there are any */
	OPTION_PATH, /* struct span; relative to the file it stands in, stored absolute; "" = none */
	OPTION_TEXTS,     /* struct conf_strings, none of them empty */
	OPTION_DURATIONS, /* struct conf_numbers of ms, not empty */
	OPTION_CLOCK,     /* "04:00" -> int minute of the day */
	OPTION_CLOCKS,    /* struct conf_numbers of minutes of the day */
	OPTION_CHOICE,    /* int: index into choices */
	OPTION_CHOICES,   /* unsigned: bits of choices */
	OPTION_ZONE,      /* struct span, loaded as conf_policy.cooldown.zone too */
	OPTION_OTHER,     /* has its own reader: routing.tasks, accounts */
	OPTION__MAX
};

struct option {
	const char *path; /* "server.max_body" */
	enum option_type type;
	bool in_policy; /* offset is into struct conf_policy, and a channel may override it */
	size_t offset;
	double min, max;
	const char *standard; /* default, as JSON text; NULL: none, help says what then */
	const char
	    *sample; /* for examples/full.json where the default tells nothing; NULL: the default */
	const char *const *choices; /* ends with NULL */
	const char *help;
};

extern const struct option options_table[];
extern const size_t options_count;

enum options_group {
	OPTIONS_GLOBAL,  /* options_table; into struct conf */
	OPTIONS_CHANNEL, /* into struct conf_channel */
	OPTIONS_RULE,
	OPTIONS_ACCOUNT,
	OPTIONS_MODEL,
	OPTIONS_TARGET,
	OPTIONS_FACT, /* of a name in models_file */
	OPTIONS__MAX
};

struct option_group {
	const char *prefix; /* of the whole path: "channels.NAME.rules[]." */
	const struct option *rows;
	size_t n;
};

extern const struct option_group options_groups[OPTIONS__MAX];

/* The words of enum conf_routing, and of enum provider_wire. */
extern const char *const options_routings[], *const options_wires[];

const char *options_type_name(const struct option *row);
/* "1s..365d", "one of: a, b", "" where there is nothing to say. */
void options_bounds(const struct option *row, char *dst, size_t cap);

/* All rows, for people; as a JSON array of {path, type, default, min, max, choices, help}. */
void options_print_table(struct buf *out);
void options_print_json(struct buf *out);
/* A whole file with every setting at its default, and one channel and one model: examples/full.json. */
void options_print_example(struct buf *out);

#endif
