/*
 * The variables of a web server: the path that comes of them is normalised, and an admin's only if one of the server's
 * own variables has it.
 */
#include "base/err.h"
#include "request.h"

#include <stdlib.h>
#include <string.h>

#define MUST(condition) ((condition) ? (void)0 : die("%s", #condition))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* One variable up to each NUL, as libfcgi gives them. */
static void
split(char *bytes, size_t n, char **params, size_t max)
{
	size_t count = 0;

	for (size_t at = 0; at < n && count + 1 < max; at += strlen(bytes + at) + 1)
		params[count++] = bytes + at;
	params[count] = NULL;
}

static void
check_path(const struct request *rq, const struct exchange *x)
{
	char out[PATH_MAX_BYTES];
	struct span uri = exchange_param(x, "REQUEST_URI");

	if (rq->endpoint == NULL)
		return;
	MUST(rq->path[0] == '/');
	MUST(path_normalise(text_span(rq->path), false, out) && strcmp(out, rq->path) == 0);
	if (rq->endpoint->who == ENDPOINT_ADMIN)
		MUST(exchange_param(x, "PATH_INFO").n + exchange_param(x, "SCRIPT_NAME").n > 0 ||
		     uri.n == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct conf conf = {.nchannels = 0};
	char *params[64], *copy = malloc(n + 1);
	struct exchange x = {.params = params, .client_fd = -1};
	struct request rq;

	if (copy == NULL)
		return 0;
	memcpy(copy, bytes, n);
	copy[n] = '\0';
	split(copy, n, params, NELEM(params));
	for (int mounted = 0; mounted < 2; mounted++) {
		conf.server.mount = mounted ? SPAN("/llm") : SPAN("");
		request_head(&rq, &x, &conf, SPAN("ours"));
		MUST(rq.id.n > 0 && rq.id.n <= 128);
		check_path(&rq, &x);
	}
	free(copy);
	return 0;
}
