/*
 * options - the one table of settings.
 *
 * A row: where it stands in the file, its type, bounds, default as text, one line of help, and where its value goes.
 * Rows of the sections upstream, pool, cooldown, breaker and channel_breaker go into a struct conf_policy and may also
 * stand in a channel.
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include "conf/conf.h"

enum option_type {
	OPTION_BOOL,      /* bool */
	OPTION_INT,       /* int64_t within min..max */
	OPTION_REAL,      /* double within min..max */
	OPTION_DURATION,  /* "30s" -> int64_t ms */
	OPTION_SIZE,      /* "32M" -> int64_t bytes */
	OPTION_TEXT,      /* struct span */
	OPTION_TEXTS,     /* struct conf_strings */
	OPTION_DURATIONS, /* struct conf_numbers of ms, not empty */
	OPTION_CLOCK,     /* "04:00" -> int minute of the day */
	OPTION_CHOICE,    /* int: index into choices */
	OPTION_CHOICES,   /* unsigned: bits of choices */
	OPTION_ZONE,      /* struct span, loaded as a zone too */
	OPTION_OTHER,     /* has its own reader: routing.tasks */
};

struct option {
	const char *path; /* "server.max_body" */
	enum option_type type;
	bool in_policy;  /* offset is into struct conf_policy, and a channel may override it */
	size_t offset;
	double min, max;
	const char *standard; /* default, as JSON text */
	const char *const *choices;
	const char *help;
};

extern const struct option options_table[];
extern const size_t options_count;

#endif
