/*
 * classify_rule - does a rule that the operator wrote match an answer?
 *
 * Text      a substring without case, or "/regex/" (PCRE2, without case) over the messages, or over the whole body
 *           where no message was found; a regex that does not compile, or that takes too many steps, does not match
 * Header    "name" must be there, "name: value" must hold that value
 * Source    SPEC.md section 6
 */
#ifndef CLASSIFY_RULE_H
#define CLASSIFY_RULE_H

#include "conf/conf.h"
#include "locate.h"
#include "reset.h"

/* `pattern` with '*', else without case. */
bool classify_rule_code(struct span pattern, struct span code);

struct classify_rule_view {
	int status, effective; /* as it came; with what an error inside a 200 says */
	struct span body;
	const struct locate_error *error;
	const struct reset_headers *headers; /* may be NULL */
};
bool classify_rule(const struct conf_rule *rule, const struct classify_rule_view *view);

#endif
