#include "dialect/estimate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define A10 "aaaaaaaaaa"
#define BASE64 "QmFzZTY0IGlzIG5vdCBhIHdvcmQ1Mjc0MTg5NTM3MjE0NTY3ODk="
#define HEX "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c"

/* By the table of estimate.c, in hundredths: o200k, cl100k, DeepSeek, Qwen, Claude 2. */
static const struct {
	const char *what, *text;
	int want[ESTIMATE__MAX];
} texts[] = {
    {"nothing", "", {0, 0, 0, 0, 0}},
    {"a word", "hello", {105, 106, 106, 106, 100}},
    {"two words", "hello world", {210, 212, 212, 212, 200}},
    {"9 letters", "worldwide", {174, 166, 181, 166, 198}},
    {"16 letters", "wwwwwwwwwwwwwwww", {174, 166, 181, 166, 198}},
    {"17 letters", "wwwwwwwwwwwwwwwww", {243, 226, 256, 226, 296}},
    {"digits", "1234567890", {460, 464, 444, 1080, 396}},
    {"a blank before a digit", "a 1", {374, 363, 397, 359, 202}},
    {"a tab before a digit", "a\t1", {220, 222, 217, 214, 199}},
    {"blanks", "a \t b", {326, 325, 324, 324, 200}},
    {"one blank at the end", "a ", {105, 106, 106, 106, 100}},
    {"lines", "\r\n\n", {69, 67, 65, 65, 102}},
    {"punctuation", "({}));", {196, 183, 234, 184, 117}},
    {"han", "\xe4\xbd\xa0\xe5\xa5\xbd", {156, 224, 126, 144, 204}},
    {"kana", "\xe3\x83\x86", {71, 105, 70, 67, 110}},
    {"hangul", "\xed\x95\x9c", {71, 105, 70, 67, 110}},
    {"cyrillic", "\xd0\x96", {35, 55, 41, 46, 60}},
    {"greek", "\xce\xa9", {42, 105, 55, 102, 110}},
    {"accented", "\xc3\xa9", {150, 250, 250, 250, 250}},
    {"vietnamese", "\xe1\xba\xbf", {10, 70, 60, 0, 90}},
    {"an emoji", "\xf0\x9f\x99\x82", {86, 93, 89, 87, 88}},
    {"a torn character", "\xe4\xbd", {86, 93, 89, 87, 88}},
    {"bytes that are none", "\xff\x80", {86, 93, 89, 87, 88}},
    {"base64", BASE64, {3640, 3744, 3640, 3848, 3692}},
    {"hex", HEX, {2736, 2736, 2784, 4272, 2784}},
    {"39 characters are no long run", "aB1aB1aB1aB1aB1aB1aB1aB1aB1aB1aB1aB1aB1",
        {3146, 3367, 2990, 3237, 2587}},
    {"40 are", "xY1xY1xY1xY1xY1xY1xY1xY1xY1xY1xY1xY1xY12", {2800, 2880, 2800, 2960, 2840}},
    {"a long word", A10 A10 A10 A10, {381, 346, 406, 346, 492}},
    {"words joined", "Some_Name-with-Many_Words-and-NUMBERS_1234-x",
        {1649, 1663, 1706, 1874, 1934}},
    {"a camel", "getUserName", {218, 240, 207, 236, 198}},
    {"words behind signs", "a/path `word (call", {666, 675, 666, 680, 751}},
    {"long runs of signs", "================", {400, 369, 468, 370, 117}},
};

static void
runs(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(texts); i++)
		for (int t = 0; t < ESTIMATE__MAX; t++) {
			int64_t got =
			    estimate_text((enum estimate_table)t, text_span(texts[i].text));

			if (got != texts[i].want[t])
				fail_msg("%s, table %d: %lld, want %d", texts[i].what, t,
				    (long long)got, texts[i].want[t]);
		}
}

/* What the tokenizers really make of it (formats.md G.3), and how far off the estimate may be. */
static const struct {
	const char *text;
	int o200k, cl100k, deepseek, qwen;
	int off;
} truths[] = {
    {"hello world", 2, 2, 2, 2, 0},
    {"Hello, world!", 4, 4, 4, 4, 1},
    {"The quick brown fox jumps over the lazy dog.", 10, 10, 10, 10, 1},
    {"1234567890", 4, 4, 4, 10, 1},
    {"\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c", 3, 6, 3, 3, 1},
    {"\xe8\x87\xaa\xe5\x8a\xa8\xe8\xbd\xae\xe6\x8d\xa2\xe8\xb4\xa6\xe5\x8f\xb7\xe6\xb1\xa0\xe4\xb8"
     "\x8e\xe4\xbc\x9a\xe8\xaf\x9d\xe7\xb2\x98\xe6\x80\xa7",
        11, 15, 9, 10, 2},
    {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe3\x83\x86\xe3\x82\xad\xe3\x82\xb9\xe3\x83"
     "\x88",
        6, 8, 5, 6, 1},
    {"for (int i = 0; i < n; i++) {\n\tsum += a[i];\n}\n", 21, 21, 21, 21, 4},
    {"{\"type\":\"function\",\"name\":\"get_weather\"}", 10, 10, 11, 10, 3},
    {"https://example.com/a/b?c=d&e=f", 11, 11, 12, 11, 6},
};

static void
truth(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(truths); i++) {
		const int want[] = {
		    truths[i].o200k, truths[i].cl100k, truths[i].deepseek, truths[i].qwen};

		for (int t = 0; t < 4; t++) {
			int64_t sum =
			    estimate_text((enum estimate_table)t, text_span(truths[i].text));
			int64_t off = (sum + 50) / 100 - want[t];

			if (off > truths[i].off || -off > truths[i].off)
				fail_msg("'%s', table %d: %lld, truly %d", truths[i].text, t,
				    (long long)sum, want[t]);
		}
	}
}

static const struct {
	const char *name;
	enum estimate_table table;
	unsigned percent;
	bool claude, openai;
} models[] = {
    {"gpt-4o-mini", ESTIMATE_O200K, 100, false, true},
    {"gpt-4.1", ESTIMATE_O200K, 100, false, true},
    {"gpt-4-turbo", ESTIMATE_CL100K, 100, false, true},
    {"gpt-3.5-turbo", ESTIMATE_CL100K, 100, false, true},
    {"text-embedding-3-small", ESTIMATE_CL100K, 100, false, true},
    {"gpt-5", ESTIMATE_O200K, 100, false, true},
    {"deepseek-chat", ESTIMATE_DEEPSEEK, 100, false, false},
    {"deepseek-ai/DeepSeek-V3", ESTIMATE_DEEPSEEK, 100, false, false},
    {"Qwen/Qwen2.5-72B", ESTIMATE_QWEN, 100, false, false},
    {"claude-2.1", ESTIMATE_CLAUDE2, 100, true, false},
    {"claude-instant-1.2", ESTIMATE_CLAUDE2, 100, true, false},
    {"claude-3-5-sonnet-20241022", ESTIMATE_O200K, 120, true, false},
    {"anthropic/claude-3.7-sonnet", ESTIMATE_O200K, 120, true, false},
    {"claude-sonnet-4-20250514", ESTIMATE_O200K, 120, true, false},
    {"claude-opus-4-5", ESTIMATE_O200K, 120, true, false},
    {"claude-opus-4-7", ESTIMATE_O200K, 155, true, false},
    {"claude-sonnet-5", ESTIMATE_O200K, 155, true, false},
    {"claude-next", ESTIMATE_O200K, 155, true, false},
    {"", ESTIMATE_O200K, 100, false, false},
    {"glm-4.6", ESTIMATE_O200K, 100, false, false},
    {"openai/gpt-4-turbo", ESTIMATE_CL100K, 100, false, true},
    {"ft:gpt-3.5-turbo-0125:acme::abc", ESTIMATE_CL100K, 100, false, true},
    {"gpt-35-turbo", ESTIMATE_CL100K, 100, false, true},
    {"GPT-4o", ESTIMATE_O200K, 100, false, true},
    {"gpt-4.5-preview", ESTIMATE_O200K, 100, false, true},
    {"gpt-6", ESTIMATE_O200K, 100, false, true},
    {"chatgpt-4o-latest", ESTIMATE_O200K, 100, false, true},
    {"openai/gpt-oss-120b", ESTIMATE_O200K, 100, false, true},
    {"o1", ESTIMATE_O200K, 100, false, true},
    {"o3-mini", ESTIMATE_O200K, 100, false, true},
    {"o4-mini:high", ESTIMATE_O200K, 100, false, true},
    {"text-embedding-ada-002", ESTIMATE_CL100K, 100, false, true},
    {"o1ympus", ESTIMATE_O200K, 100, false, false},
    {"text-embedding-v3", ESTIMATE_O200K, 100, false, false},
    {"gpt-neox-20b", ESTIMATE_O200K, 100, false, false},
    {"my-gpt-4o", ESTIMATE_O200K, 100, false, false},
    {"anthropic/claude-instant", ESTIMATE_CLAUDE2, 100, true, false},
};

static void
names(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(models); i++) {
		struct estimate_model m = estimate_model(text_span(models[i].name));

		if (m.table != models[i].table || m.percent != models[i].percent ||
		    m.claude != models[i].claude || m.openai != models[i].openai)
			fail_msg("%s: table %d, %u %%, claude %d, openai %d", models[i].name,
			    (int)m.table, m.percent, m.claude, m.openai);
	}
}

/* Twice the text, twice the time: also for what looks opaque up to its end. */
static void
linear(void **state)
{
	static const char *const units[] = {"aB", "a-", "1", " ", "\xe4\xbd\xa0", "_", "a b1 "};
	size_t n = 4 << 20;
	char *text = malloc(n);

	(void)state;
	assert_non_null(text);
	for (size_t u = 0; u < NELEM(units); u++) {
		size_t k = text_span(units[u]).n;
		clock_t began = clock();

		for (size_t i = 0; i < n; i++)
			text[i] = units[u][i % k];
		(void)estimate_text(ESTIMATE_O200K, (struct span){text, n});
		if (clock() - began > CLOCKS_PER_SEC)
			fail_msg("'%s' takes too long", units[u]);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(runs),
	    cmocka_unit_test(truth),
	    cmocka_unit_test(names),
	    cmocka_unit_test(linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
