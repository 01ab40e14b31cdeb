/*
 * The variables of a web server, as FastCGI codes them: what is taken lies within the bytes; the path that comes of
 * them is normalised, and an admin's only if one of the server's own variables has it.
 */
#include "base/err.h"
#include "fcgi_params.h"
#include "request.h"

#include <stdlib.h>
#include <string.h>

#define MUST(condition) ((condition) ? (void)0 : die("%s", #condition))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
check_strings(char *const *params, const char *bytes, size_t n)
{
	const char *next = bytes;

	for (; *params != NULL; params++) {
		MUST(*params >= next && *params < bytes + n);
		next = *params + strlen(*params) + 1;
		MUST(next <= bytes + n);
		MUST(strchr(*params, '=') != NULL && **params != '=');
	}
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
	struct why why = {""};

	if (copy == NULL)
		return 0;
	memcpy(copy, bytes, n);
	if (fcgi_params(copy, n, params, NELEM(params), &why) == ERR_OK) {
		check_strings(params, copy, n);
		for (int mounted = 0; mounted < 2; mounted++) {
			conf.server.mount = mounted ? SPAN("/llm") : SPAN("");
			request_head(&rq, &x, &conf, SPAN("ours"));
			MUST(rq.id.n > 0 && rq.id.n <= 128);
			check_path(&rq, &x);
		}
	} else {
		MUST(why.text[0] != '\0');
	}
	free(copy);
	return 0;
}
