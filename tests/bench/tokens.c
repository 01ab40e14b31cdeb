/*
 * tokens - counts tokens with our own tables, for the tests and the figures: `tokens TABLES ENCODING FILE [TIMES]`.
 *
 * FILE holds texts, each behind a line with its length in bytes. Without TIMES: a line for each with its count. With it:
 * all are counted that often, and one line of JSON says how long the fastest round took.
 */
#include "dialect/tokens.h"
#include "base/buf.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)1 << 30)

static int64_t
count(struct tokens *tokens, enum vocab_encoding encoding, struct span all, bool print)
{
	int64_t sum = 0;

	while (all.n > 0) {
		size_t line = text_find(all, SPAN("\n"));
		struct span text = text_from(all, line + 1);
		int64_t length, n;

		if (!text_i64((struct span){all.p, line}, 0, (int64_t)text.n, &length))
			die("a line that is no length");
		text.n = (size_t)length;
		n = tokens_exact(tokens, encoding, text);
		sum += n;
		if (print)
			printf("%lld\n", (long long)n);
		all = text_from(all, line + 1 + text.n);
	}
	return sum;
}

static double
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
measure(struct tokens *tokens, enum vocab_encoding encoding, struct span all, int64_t times)
{
	double best = 1e12;
	int64_t sum = 0;

	for (int64_t i = 0; i < times; i++) {
		double begin = now_ms(), took;

		sum = count(tokens, encoding, all, false);
		took = now_ms() - begin;
		if (took < best)
			best = took;
	}
	printf("{\"tokens\": %lld, \"ms\": %.4f}\n", (long long)sum, best);
}

int
main(int argc, char **argv)
{
	struct tokens *tokens;
	enum vocab_encoding encoding;
	int64_t times = 0;
	struct why why;
	struct buf all;
	FILE *f;
	char *p;

	if (argc < 4 || (f = fopen(argv[3], "rb")) == NULL)
		die("usage: tokens TABLES o200k|cl100k FILE [TIMES]");
	encoding = strcmp(argv[2], "o200k") == 0 ? VOCAB_O200K : VOCAB_CL100K;
	if (tokens_open(argv[1], &tokens, &why) != ERR_OK)
		die("%s", why.text);
	buf_init(&all, FILE_MAX);
	while ((p = buf_room(&all, 1 << 20)) != NULL) {
		size_t n = fread(p, 1, 1 << 20, f);

		all.n += n;
		if (n == 0)
			break;
	}
	if (argc > 4 && text_i64(text_span(argv[4]), 1, 1000000, &times))
		measure(tokens, encoding, buf_text(&all), times);
	else
		count(tokens, encoding, buf_text(&all), true);
	fclose(f);
	buf_release(&all);
	tokens_close(&tokens);
	return 0;
}
