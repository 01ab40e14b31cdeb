/*
 * tokens - counts tokens with our own tables, for the tests and the figures:
 *
 *   tokens TABLES o200k|cl100k FILE                 a line for each text: its count, and the hundredths of the estimate
 *   tokens TABLES o200k|cl100k FILE TIMES [BEFORE]  counts the texts of BEFORE, then all of FILE so often: one line of JSON
 *                                                   with how long the first and the fastest round took
 *   tokens TABLES o200k|cl100k FILE hold            counts, says so, and waits for the end of standard input
 *
 * Files hold texts, each behind a line with its length in bytes.
 */
#include "dialect/tokens.h"
#include "base/buf.h"
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)1 << 30)

struct bench {
	struct tokens *tokens;
	enum vocab_encoding encoding;
};

static void
print(const struct bench *b, int64_t n, struct span text)
{
	enum estimate_table table = b->encoding == VOCAB_O200K ? ESTIMATE_O200K : ESTIMATE_CL100K;

	printf("%lld %lld\n", (long long)n, (long long)estimate_text(table, text));
}

static int64_t
count(const struct bench *b, struct span all, bool each)
{
	int64_t sum = 0;

	while (all.n > 0) {
		size_t line = text_find(all, SPAN("\n"));
		struct span text = text_from(all, line + 1);
		int64_t length, n;

		if (!text_i64((struct span){all.p, line}, 0, (int64_t)text.n, &length))
			die("a line that is no length");
		text.n = (size_t)length;
		n = tokens_exact(b->tokens, b->encoding, text);
		sum += n;
		if (each)
			print(b, n, text);
		all = text_from(all, line + 1 + text.n);
	}
	return sum;
}

static void
measure(const struct bench *b, struct span all, int64_t times)
{
	double best = 1e12, first = 0;
	int64_t sum = 0;

	for (int64_t i = 0; i < times; i++) {
		double begin = measure_us(CLOCK_MONOTONIC) / 1e3, took;

		sum = count(b, all, false);
		took = measure_us(CLOCK_MONOTONIC) / 1e3 - begin;
		if (i == 0)
			first = took;
		if (took < best)
			best = took;
	}
	printf(
	    "{\"tokens\": %lld, \"first_ms\": %.4f, \"ms\": %.4f}\n", (long long)sum, first, best);
}

static void
hold(const struct bench *b, struct span all)
{
	printf("%lld\n", (long long)count(b, all, false));
	fflush(stdout);
	while (getchar() != EOF)
		;
}

static struct buf
read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct buf all;
	char *p;

	if (f == NULL)
		die("%s cannot be read", path);
	buf_init(&all, FILE_MAX);
	while ((p = buf_room(&all, 1 << 20)) != NULL) {
		size_t n = fread(p, 1, 1 << 20, f);

		all.n += n;
		if (n == 0)
			break;
	}
	fclose(f);
	return all;
}

int
main(int argc, char **argv)
{
	struct bench b;
	int64_t times = 0;
	struct why why;
	struct buf all;

	if (argc < 4)
		die("usage: tokens TABLES o200k|cl100k FILE [TIMES [BEFORE] | hold]");
	b.encoding = strcmp(argv[2], "o200k") == 0 ? VOCAB_O200K : VOCAB_CL100K;
	if (tokens_open(argv[1], &b.tokens, &why) != ERR_OK)
		die("%s", why.text);
	if (argc > 5) {
		struct buf before = read_file(argv[5]);

		count(&b, buf_text(&before), false);
		buf_release(&before);
	}
	all = read_file(argv[3]);
	if (argc > 4 && text_i64(text_span(argv[4]), 1, 1000000, &times))
		measure(&b, buf_text(&all), times);
	else if (argc > 4)
		hold(&b, buf_text(&all));
	else
		count(&b, buf_text(&all), true);
	buf_release(&all);
	tokens_close(&b.tokens);
	return 0;
}
