#include "reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN_TEXT_BYTES 380

#define PLAIN_HEAD                                                                          \
	"{\"id\":\"chatcmpl-mock000000000000000000000\",\"object\":\"chat.completion\","    \
	"\"created\":1700000000,\"model\":\"mock\",\"choices\":[{\"index\":0,\"message\":{" \
	"\"role\":\"assistant\",\"content\":\""
#define PLAIN_TAIL                                                                        \
	"\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{" \
	"\"prompt_tokens\":25,\"completion_tokens\":64,\"total_tokens\":89,"              \
	"\"prompt_tokens_details\":{\"cached_tokens\":0},"                                \
	"\"completion_tokens_details\":{\"reasoning_tokens\":0}},"                        \
	"\"system_fingerprint\":\"fp_mock\"}"
#define CHUNK_HEAD                                                              \
	"data: {\"id\":\"chatcmpl-mock\",\"object\":\"chat.completion.chunk\"," \
	"\"created\":1700000000,\"model\":\"mock\",\"choices\":["

void
reply_plain(struct wire_bytes *b)
{
	static const char prose[] =
	    "The quick brown fox jumps over the lazy dog near the river bank. ";
	wire_putf(b,
	    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: req_mock\r\n"
	    "Content-Length: %zu\r\n\r\n" PLAIN_HEAD,
	    sizeof PLAIN_HEAD - 1 + PLAIN_TEXT_BYTES + sizeof PLAIN_TAIL - 1);
	for (size_t i = 0; i < PLAIN_TEXT_BYTES; i++)
		wire_put(b, &prose[i % (sizeof prose - 1)], 1);
	wire_put(b, PLAIN_TAIL, sizeof PLAIN_TAIL - 1);
}

void
reply_json(struct wire_bytes *b, long status, const char *json)
{
	wire_putf(b,
	    "HTTP/1.1 %ld Mock\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%s",
	    status, status == 429 ? "Retry-After: 1\r\n" : "", strlen(json), json);
}

static void
chunk(struct wire_bytes *b, const char *text)
{
	wire_putf(b, "%zx\r\n%s\r\n", strlen(text), text);
}

void
reply_begin(struct wire_bytes *b)
{
	static const char head[] =
	    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
	    "x-request-id: req_mock\r\nTransfer-Encoding: chunked\r\n\r\n";
	wire_put(b, head, sizeof head - 1);
	chunk(b, CHUNK_HEAD "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
	                    "\"logprobs\":null,\"finish_reason\":null}]}\n\n");
}

void
reply_event(struct wire_bytes *b, const struct reply_wishes *w, long i)
{
	char filler[REPLY_MAX_FILLER + 1], event[REPLY_MAX_FILLER + 512];
	size_t n = (size_t)w->filler;
	memset(filler, 'x', n);
	filler[n] = 0;
	snprintf(event, sizeof event,
	    CHUNK_HEAD "{\"index\":0,\"delta\":{\"content\":\"t%05ld @%015llu %s\"},"
	               "\"logprobs\":null,\"finish_reason\":null}]}\n\n",
	    i, (unsigned long long)wire_now_us(), filler);
	chunk(b, event);
}

void
reply_end(struct wire_bytes *b, const struct reply_wishes *w)
{
	char usage[512];
	chunk(b, CHUNK_HEAD
	    "{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}]}\n\n");
	snprintf(usage, sizeof usage,
	    CHUNK_HEAD "],\"usage\":{\"prompt_tokens\":25,\"completion_tokens\":%ld,"
	               "\"total_tokens\":%ld}}\n\n",
	    w->events, w->events + 25);
	chunk(b, usage);
	chunk(b, "data: [DONE]\n\n");
	wire_put(b, "0\r\n\r\n", 5);
}

/* The value of a JSON member of the body's text, or NULL; good enough for our own load. */
static const char *
member(const char *body, const char *quoted_name)
{
	const char *p = strstr(body, quoted_name);
	if (p == NULL)
		return NULL;
	p += strlen(quoted_name);
	return p + strspn(p, " :");
}

static long
clamped(double v, long max)
{
	return v < 0 ? 0 : v > (double)max ? max : (long)v;
}

void
reply_wishes_read(struct reply_wishes *w, const char *body)
{
	*w = (struct reply_wishes){.events = 16, .status = 200};
	const char *stream = member(body, "\"stream\""), *model = member(body, "\"model\"");
	w->stream = stream != NULL && strncmp(stream, "true", 4) == 0;
	if (model == NULL || *model != '"')
		return;
	const char *end = strchr(++model, '"');
	for (const char *p = model; end != NULL && p < end; p++) {
		if (*p != '-')
			continue;
		double v = strtod(p + 2, NULL);
		switch (p[1]) {
		case 'n': w->events = clamped(v, 1000000); break;
		case 'd': w->gap_us = (uint64_t)clamped(v * 1000, 60000000); break;
		case 'l': w->latency_us = (uint64_t)clamped(v * 1000, 60000000); break;
		case 'b': w->filler = clamped(v, REPLY_MAX_FILLER); break;
		case 'e': w->status = clamped(v, 599); break;
		default: break;
		}
	}
}
