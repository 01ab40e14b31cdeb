/*
 * classify_table - every code and phrase that we know, as data.
 *
 * A row matches when all that it names matches; the first row that matches decides. Codes are compared without case, or
 * as patterns where they hold '*'. Phrases are patterns of classify_words.h.
 *
 * Source    SPEC.md section 6; formats.md F.3 to F.13, C.9, D.7
 */
#ifndef CLASSIFY_TABLE_H
#define CLASSIFY_TABLE_H

#include "conf/provider.h"
#include "verdict.h"

/* In place of an HTTP status. */
enum classify_status {
	STATUS_ANY = 0,
	STATUS_FAULT =
	    1, /* 400, 404, 405, 409, 413, 415, 422, and none: the caller may be at fault */
	STATUS_BAND = 2,    /* none: an error inside a 200 */
	STATUS_REFUSED = 4, /* 401, 403 */
};

/* When a limit ends although the answer does not say it (formats.md F.14, 14). */
enum classify_implied {
	IMPLIED_NOTHING,
	IMPLIED_PACIFIC_DAY, /* next midnight in Los Angeles */
	IMPLIED_CHINA_DAY,   /* next midnight of UTC+8 */
	IMPLIED_MONTH,       /* first of the next month, UTC */
};

struct classify_row {
	int status; /* or an enum classify_status */
	const char *code, *text,
	    *unless; /* NULL asks nothing; `unless` is a phrase that must not be there */
	enum verdict verdict;
	enum classify_implied implied;
	bool whole;   /* a rate limit of the account, also where plain ones are a model's */
	bool raw_too; /* also in the error of the provider behind */
};

struct classify_table {
	const char *name;
	const struct classify_row *rows;
	size_t n;
};

/* Of one provider; without rows where the generic ones say all. */
const struct classify_table *classify_table_of(enum provider_id id);

/* Codes of base_resp, whatever the channel. */
extern const struct classify_table classify_table_base_resp;
extern const struct classify_table classify_table_codes;
extern const struct classify_table classify_table_texts;
/* For 401 and 403 that nothing else explained: in this order. */
extern const struct classify_table classify_table_refused;

#endif
