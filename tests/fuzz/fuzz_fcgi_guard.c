/*
 * A peer's bytes through the guard: the same comes out whole and in pieces, and what is called good is a request that
 * libfcgi can take: heads without padding, one number, variables that end where their lengths say, 1 MiB at most.
 */
#include "fcgi_guard.h"

#include <stdlib.h>

#define MUST(condition) ((condition) ? (void)0 : die("%s", #condition))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static enum fcgi_guard_rc
run(struct buf *out, struct buf *params_end, const uint8_t *bytes, size_t n, size_t size)
{
	struct fcgi_guard g;
	enum fcgi_guard_rc rc = FCGI_GUARD_MORE, last = FCGI_GUARD_MORE;
	struct why why = {""};
	size_t at = 0;

	fcgi_guard_init(&g);
	while (at < n && last <= FCGI_GUARD_HEAD) {
		size_t piece = size < n - at ? size : n - at;
		char *copy = malloc(piece);
		struct span in = {copy, piece};

		MUST(copy != NULL);
		memcpy(copy, bytes + at, piece);
		last = fcgi_guard_pass(&g, &in, out, &why);
		MUST(in.n < piece && g.answer_n <= sizeof g.answer);
		MUST(g.name_left + g.value_left <= FCGI_GUARD_PARAMS_BYTES);
		MUST((last == FCGI_GUARD_REFUSED) == (why.text[0] != '\0'));
		if (last != FCGI_GUARD_MORE)
			rc = last;
		if (last == FCGI_GUARD_HEAD)
			buf_span(params_end, buf_text(out));
		at += piece - in.n;
		free(copy);
	}
	return rc;
}

static size_t
take_length(const unsigned char *p, size_t n, size_t *at)
{
	size_t length = 0, bytes;

	MUST(*at < n);
	bytes = p[*at] < 0x80 ? 1 : 4;
	MUST(n - *at >= bytes);
	for (size_t i = 0; i < bytes; i++)
		length = length << 8 | p[(*at)++];
	return length & 0x7fffffff;
}

static void
check_head(const struct buf *head)
{
	const unsigned char *p = (const unsigned char *)head->p;
	unsigned char *params = malloc(head->n);
	size_t n = 0, at = 16, pair = 0;

	MUST(head->n >= 24 && p[0] == 1 && p[1] == 1 && p[5] == 8 && p[8] == 0 && p[9] == 1);
	for (; at < head->n; at += 8 + (size_t)p[at + 4] * 256 + p[at + 5]) {
		size_t length = (size_t)p[at + 4] * 256 + p[at + 5];

		MUST(p[at] == 1 && p[at + 1] == 4 && p[at + 2] == p[2] && p[at + 3] == p[3]);
		MUST(p[at + 6] == 0 && at + 8 + length <= head->n);
		MUST((length == 0) == (at + 8 == head->n));
		memcpy(params + n, p + at + 8, length);
		n += length;
	}
	MUST(n <= FCGI_GUARD_PARAMS_BYTES);
	while (pair < n) {
		size_t name = take_length(params, n, &pair), value = take_length(params, n, &pair);

		MUST(name <= n - pair && value <= n - pair - name);
		MUST(memchr(params + pair, '=', name) == NULL);
		pair += name + value;
	}
	free(params);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct buf whole, pieces, head[2];
	size_t size = n == 0 ? 1 : 1 + bytes[n - 1] % 40;
	enum fcgi_guard_rc rc;

	buf_init(&whole, 4u << 20);
	buf_init(&pieces, 4u << 20);
	buf_init(&head[0], 4u << 20);
	buf_init(&head[1], 4u << 20);
	rc = run(&whole, &head[0], bytes, n, n);
	MUST(run(&pieces, &head[1], bytes, n, size) == rc);
	if (rc == FCGI_GUARD_REFUSED) { /* in pieces, more may have come out before */
		MUST(head[0].n == head[1].n);
	} else {
		MUST(whole.n == pieces.n && whole.n <= n);
		MUST(whole.n == 0 || memcmp(whole.p, pieces.p, whole.n) == 0);
	}
	if (head[0].n > 0)
		check_head(&head[0]);
	buf_release(&whole);
	buf_release(&pieces);
	buf_release(&head[0]);
	buf_release(&head[1]);
	return 0;
}
