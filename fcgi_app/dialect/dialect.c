#include "dialect/dialect.h"

#define BYTES_PER_TOKEN 4 /* formats.md G.7: median error below 10 % */

const char *
dialect_error_type(int status)
{
	switch (status) {
	case 403: return "permission_error";
	case 408:
	case 504: return "timeout";
	case 429: return "rate_limit_error";
	default: return status >= 500 ? "server_error" : "invalid_request_error";
	}
}

int64_t
dialect_guess_tokens(size_t bytes)
{
	return (int64_t)(bytes / BYTES_PER_TOKEN + (bytes % BYTES_PER_TOKEN != 0));
}

void
dialect_tap_init(struct dialect_tap *tap)
{
	*tap = (struct dialect_tap){.usage = {.prompt = -1,
	                                .completion = -1,
	                                .cached = -1,
	                                .cache_write = -1,
	                                .reasoning = -1,
	                                .total = -1}};
}

/* One of the two, from the other and the total. */
static void
fill_from_total(struct dialect_usage *u)
{
	if (u->prompt < 0 && u->completion >= 0 && u->total >= u->completion)
		u->prompt = u->total - u->completion;
	if (u->completion < 0 && u->prompt >= 0 && u->total >= u->prompt)
		u->completion = u->total - u->prompt;
}

static void
guess_missing(struct dialect_usage *u, size_t prompt_bytes, size_t content_bytes)
{
	fill_from_total(u);
	if (u->prompt < 0) {
		u->prompt = dialect_guess_tokens(prompt_bytes);
		u->estimated = true;
	}
	fill_from_total(u);
	if (u->completion < 0) {
		u->completion = dialect_guess_tokens(content_bytes);
		u->estimated |= content_bytes > 0;
	}
}

void
dialect_add_up(struct dialect_usage *u)
{
	fill_from_total(u);
	/* some hosts count cached tokens beside the prompt, reasoning beside the completion */
	if (u->prompt >= 0 && u->cached > u->prompt)
		u->prompt += u->cached;
	if (u->completion >= 0 &&
	    (u->reasoning > u->completion ||
	        (u->reasoning > 0 && u->total == u->prompt + u->completion + u->reasoning)))
		u->completion += u->reasoning;
	if (u->prompt >= 0 && u->completion >= 0)
		u->total = u->prompt + u->completion;
}

void
dialect_settle(struct dialect_tap *tap, size_t prompt_bytes)
{
	struct dialect_usage *u = &tap->usage;

	guess_missing(u, prompt_bytes, tap->content_bytes);
	dialect_add_up(u);
}
