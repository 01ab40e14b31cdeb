#define PCRE2_CODE_UNIT_WIDTH 8

#include "base/regex.h"

#include "base/err.h"

#include <pcre2.h>

#include <stdio.h>
#include <stdlib.h>

#define STEPS_MAX 100000 /* of backtracking, for one text */

static pcre2_code *
compile(struct span regex, int *fault_out, PCRE2_SIZE *at_out)
{
	return pcre2_compile((PCRE2_SPTR)(regex.n > 0 ? regex.p : ""), regex.n,
	    PCRE2_CASELESS | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C,
	    fault_out, at_out, NULL);
}

bool
regex_check(struct span regex, char *reason_out, size_t cap)
{
	PCRE2_UCHAR words[128];
	PCRE2_SIZE at;
	int fault;
	pcre2_code *code = compile(regex, &fault, &at);

	if (code != NULL) {
		pcre2_code_free(code);
		return true;
	}
	if (pcre2_get_error_message(fault, words, sizeof words) < 0)
		words[0] = '\0';
	snprintf(reason_out, cap, "%s, at its byte %zu", (const char *)words, (size_t)at);
	return false;
}

bool
regex_matches(struct span regex, struct span text)
{
	PCRE2_SIZE at;
	int fault, rc;
	pcre2_code *code = compile(regex, &fault, &at);
	pcre2_match_data *data;
	pcre2_match_context *limits;

	if (code == NULL)
		return false;
	data = pcre2_match_data_create_from_pattern(code, NULL);
	limits = pcre2_match_context_create(NULL);
	if (data == NULL || limits == NULL)
		die("no memory for a regular expression");
	pcre2_set_match_limit(limits, STEPS_MAX);
	pcre2_set_depth_limit(limits, STEPS_MAX);
	rc = pcre2_match(code, (PCRE2_SPTR)(text.n > 0 ? text.p : ""), text.n, 0, 0, data, limits);
	pcre2_match_context_free(limits);
	pcre2_match_data_free(data);
	pcre2_code_free(code);
	return rc >= 0;
}

struct regex {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
	bool compiled; /* to machine code */
};

struct regex *
regex_new(struct span expression)
{
	struct regex *r = calloc(1, sizeof *r);
	PCRE2_SIZE at;
	int fault;

	if (r == NULL)
		die("no memory for a regular expression");
	r->code = pcre2_compile((PCRE2_SPTR)expression.p, expression.n,
	    PCRE2_ANCHORED | PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &fault, &at, NULL);
	if (r->code == NULL)
		die("an expression of ours: error %d at byte %zu", fault, (size_t)at);
	r->compiled = pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0;
	r->data = pcre2_match_data_create_from_pattern(r->code, NULL);
	r->limits = pcre2_match_context_create(NULL);
	if (r->data == NULL || r->limits == NULL)
		die("no memory for a regular expression");
	return r;
}

void
regex_free(struct regex **regex)
{
	if (*regex == NULL)
		return;
	pcre2_match_context_free((*regex)->limits);
	pcre2_match_data_free((*regex)->data);
	pcre2_code_free((*regex)->code);
	free(*regex);
	*regex = NULL;
}

/* Steps are for the whole rest of the text: an expression that goes back over a run takes one for each character. */
static void
set_limit(const struct regex *r, size_t left)
{
	size_t steps = STEPS_MAX + 8 * left;

	pcre2_set_match_limit(r->limits, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX);
}

size_t
regex_length(const struct regex *r, struct span text, size_t at)
{
	const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(r->data);
	PCRE2_SPTR p = (PCRE2_SPTR)text.p;
	int rc = PCRE2_ERROR_JIT_STACKLIMIT;

	set_limit(r, text.n - at);
	if (r->compiled)
		rc = pcre2_jit_match(r->code, p, text.n, at, 0, r->data, r->limits);
	if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
		rc = pcre2_match(
		    r->code, p, text.n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, r->data, r->limits);
	return rc >= 0 ? (size_t)(ends[1] - at) : 0;
}
