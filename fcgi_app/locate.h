/*
 * locate - the error inside what an upstream answered, whatever envelope it came in.
 *
 * Envelopes {"error":{}}, {"error":""}, flat {code,msg}, [{"error":{}}], {"response":{"error":{}}}, {"errors":[]},
 *           {"detail":""|[]}, {"object":"error"}, {"base_resp":{}}, a bare string, plain text, an SSE event
 * Rules     only error fields are read; what does not parse, a page for people, or absurdly nested, leaves nothing
 * Memory    everything lives in the arena, or borrows from the body
 * Source    formats.md D.7, D.8, D.9, F.2, F.10, F.13
 */
#ifndef LOCATE_H
#define LOCATE_H

#include "base/json.h"

#define LOCATE_CODES_MAX 24

struct locate_error {
	bool html;      /* a page */
	bool base_resp; /* codes are numbers of base_resp, which mean nothing elsewhere */
	bool found;     /* some error field is there */
	const struct json *object; /* the object with the fields, or NULL */
	const struct json *root;   /* the document, or NULL */
	struct span
	    codes[LOCATE_CODES_MAX]; /* code, type, status, reasons ... the more exact first */
	size_t ncodes;
	int status;          /* 400..599 where a field says so, else 0 */
	struct span message; /* the first */
	struct span text;    /* all messages, joined, cut */
	struct span raw;     /* the error of a provider behind the provider, unparsed */
	struct span finish;  /* finish_reason of a choice */
};

void locate_error(
    struct arena *arena, struct span body, struct span content_type, struct locate_error *out);

#endif
