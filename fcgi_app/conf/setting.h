/*
 * setting - put the members of an object where the rows of the option table say, checked against them.
 */
#ifndef CONF_SETTING_H
#define CONF_SETTING_H

#include "conf/load.h"
#include "conf/options.h"

/* One table and the structs that its values go to. */
struct setting_into {
	enum options_group group;
	void *base;
	struct conf_policy *policy; /* for rows in_policy; may be NULL where there are none */
};

/* Give every row with a default its default. */
void setting_defaults(struct load *load, const struct setting_into *into);

/*
 * Read the members of `object`, which stands at `prefix` ("", or "cooldown." and the like) of the table. Reports what no
 * row names, wrong types and bounds. Rows of OPTION_OTHER are left to their own readers.
 */
void setting_read(struct load *load, const struct tree *object, const struct setting_into *into,
    const char *prefix);

/* Where a row's value lies. */
void *setting_at(const struct option *row, const struct setting_into *into);

/* "must be <wanted>, is a number"; always false. */
bool setting_mistyped(struct load *load, const struct tree *node, const char *wanted);
/* A string, expanded, without control characters but tab and newline, copied into the configuration. */
bool setting_text(struct load *load, const struct tree *node, struct span *out);
/* A list of strings, none empty. */
bool setting_texts(struct load *load, const struct tree *node, struct conf_strings *out);
/* A name as channels, accounts and realms have: 1..64 of [A-Za-z0-9._@-]. */
bool setting_is_name(struct span name);

#endif
