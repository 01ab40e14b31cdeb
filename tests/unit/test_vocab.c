#include "dialect/vocab.h"
#include "lib/ranks.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct vocab real;

static int
setup(void **state)
{
	struct why why;

	(void)state;
	if (vocab_open(ranks_path(), &real, &why) == ERR_OK)
		return 0;
	fprintf(stderr, "%s (make tokenizer)\n", why.text);
	return -1;
}

static int
teardown(void **state)
{
	(void)state;
	vocab_close(&real);
	return 0;
}

/* Ranks as OpenAI's files have them. */
static void
ranks(void **state)
{
	static const struct {
		const char *token;
		uint32_t o200k, cl100k;
	} rows[] = {
	    {"!", 0, 0},
	    {"hello", 24912, 15339},
	    {" world", 2375, 1917},
	    {"\n\n", 279, 271},
	    {"a", 64, 64},
	    {"\xff", 187, 187},
	    {"\xe4\xbd\xa0\xe5\xa5\xbd", 177519, VOCAB_NONE},
	    {" Conveyor", 156313, 100255},
	    {" conveyor belt", VOCAB_NONE, VOCAB_NONE},
	};

	(void)state;
	for (size_t i = 0; i < NELEM(rows); i++) {
		size_t n = strlen(rows[i].token);
		uint32_t o = vocab_rank(&real.tables[VOCAB_O200K], rows[i].token, n),
		         c = vocab_rank(&real.tables[VOCAB_CL100K], rows[i].token, n);

		if (o != rows[i].o200k || c != rows[i].cl100k)
			fail_msg("'%s': %u, %u", rows[i].token, o, c);
	}
}

/* Every single byte is a token, and the table of pairs says what the search does. */
static void
bytes_and_pairs(void **state)
{
	(void)state;
	for (size_t t = 0; t < VOCAB__MAX; t++)
		for (unsigned i = 0; i < VOCAB_PAIRS; i++) {
			const char p[2] = {(char)(i >> 8), (char)(i & 0xff)};

			assert_true(i > 255 || vocab_rank(&real.tables[t], p + 1, 1) < 256);
			assert_int_equal(
			    vocab_rank(&real.tables[t], p, 2), vocab_pair(&real.tables[t], p));
		}
	assert_true(vocab_whole(&real));
}

/* What is done to the header, and whether its own checksum is made right again. */
static const struct {
	const char *what;
	size_t at;
	uint64_t value;
	unsigned bytes;
	bool sum;
	const char *why;
} damages[] = {
    {"nothing", 0, 0, 0, true, NULL},
    {"other magic", 0, 'X', 1, true, "it is no file of token ranks"},
    {"the other order of bytes", 8, 0x04030201, 4, true,
        "it was made on a machine with another order of bytes"},
    {"a later version", 12, 2, 4, true, "it is of another version"},
    {"a bit of the header", 40, 1, 1, false, "its header is damaged"},
    {"a checksum of the header", 248, 1, 8, false, "its header is damaged"},
    {"more bytes than there are", 16, 99999999, 8, true, "it is cut, or something was added"},
#define EXTENT(field) offsetof(struct vocab_header, extents) + offsetof(struct vocab_extent, field)
    {"slots that are no power of two", EXTENT(slots), 524287, 4, true, "makes no sense"},
    {"no slots", EXTENT(slots), 0, 4, true, "makes no sense"},
    {"more slots than the file holds", EXTENT(slots), 4194304, 4, true, "makes no sense"},
    {"far more slots", EXTENT(slots), 0x80000000, 4, true, "makes no sense"},
    {"no slot is free", EXTENT(tokens), 524288, 4, true, "makes no sense"},
    {"tags beyond the end", EXTENT(tags_at), 1 << 30, 8, true, "makes no sense"},
    {"tags in the header", EXTENT(tags_at), 8, 8, true, "makes no sense"},
    {"slots beyond the end", EXTENT(slots_at), 9600000, 8, true, "makes no sense"},
    {"slots at an odd place", EXTENT(slots_at), 257, 8, true, "makes no sense"},
    {"slots that wrap around", EXTENT(slots_at), UINT64_MAX - 7, 8, true, "makes no sense"},
    {"pairs beyond the end", EXTENT(pairs_at), 9600000, 8, true, "makes no sense"},
    {"bytes beyond the end", EXTENT(bytes_at), 9600000, 8, true, "makes no sense"},
    {"too many bytes", EXTENT(bytes), UINT32_MAX, 4, true, "makes no sense"},
    {"too long a token", EXTENT(longest), 256, 4, true, "makes no sense"},
    {"too long a search", EXTENT(probes), 65, 4, true, "makes no sense"},
};

static void
headers(void **state)
{
	char *copy = malloc(real.file.n);
	struct vocab vocab;
	struct why why;

	(void)state;
	assert_non_null(copy);
	for (size_t i = 0; i < NELEM(damages); i++) {
		struct vocab_header h;
		enum err err;

		memcpy(copy, real.file.p, i == 0 ? real.file.n : sizeof h);
		memcpy(&h, copy, sizeof h);
		memcpy((char *)&h + damages[i].at, &damages[i].value, damages[i].bytes);
		if (damages[i].sum)
			h.head_sum = vocab_sum(&h, offsetof(struct vocab_header, head_sum));
		memcpy(copy, &h, sizeof h);
		err = vocab_read((struct span){copy, real.file.n}, &vocab, &why);
		if (damages[i].why == NULL
		        ? err != ERR_OK
		        : err != ERR_BAD_INPUT || strstr(why.text, damages[i].why) == NULL)
			fail_msg("%s: %d, %s", damages[i].what, (int)err, why.text);
	}
	free(copy);
}

static void
lengths(void **state)
{
	char *copy = malloc(real.file.n + 16);
	struct vocab vocab;
	struct why why;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, real.file.p, real.file.n);
	memset(copy + real.file.n, 0, 16);
	for (size_t n = 0; n <= 256; n++)
		assert_int_equal(vocab_read((struct span){copy, n}, &vocab, &why), ERR_BAD_INPUT);
	assert_int_equal(
	    vocab_read((struct span){copy, real.file.n - 1}, &vocab, &why), ERR_BAD_INPUT);
	assert_int_equal(
	    vocab_read((struct span){copy, real.file.n + 8}, &vocab, &why), ERR_BAD_INPUT);
	assert_int_equal(
	    vocab_read((struct span){copy + 1, real.file.n}, &vocab, &why), ERR_BAD_INPUT);
	free(copy);
}

/* Behind a sound header stands anything: searches stay within the file, and the checksum tells. */
static void
spoiled(void **state)
{
	char *copy = malloc(real.file.n), text[300];
	unsigned long long seed = 20260101;
	struct vocab vocab;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, real.file.p, real.file.n);
	copy[real.file.n / 2] ^= 1;
	assert_int_equal(vocab_read((struct span){copy, real.file.n}, &vocab, NULL), ERR_OK);
	assert_false(vocab_whole(&vocab));
	for (size_t i = sizeof(struct vocab_header); i < real.file.n; i++)
		copy[i] = (char)ranks_random(&seed, 256);
	for (int i = 0; i < 20000; i++) {
		size_t n = 1 + ranks_random(&seed, sizeof text - 1);

		for (size_t k = 0; k < n; k++)
			text[k] = (char)ranks_random(&seed, 256);
		(void)vocab_rank(&vocab.tables[i % VOCAB__MAX], text, n);
	}
	free(copy);
}

/* One slot that leads out of the file, and then no slot that is free. */
static void
bent(void **state)
{
	char *copy = malloc(real.file.n);
	struct vocab_header h;
	struct vocab vocab;
	uint64_t hash = vocab_hash("hello", 5);
	uint32_t at_len = 0xffffff05;
	char *tags, *slots;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, real.file.p, real.file.n);
	memcpy(&h, copy, sizeof h);
	assert_int_equal(vocab_read((struct span){copy, real.file.n}, &vocab, NULL), ERR_OK);
	tags = copy + h.extents[0].tags_at;
	slots = copy + h.extents[0].slots_at;
	for (uint32_t i = 0; i < h.extents[0].slots; i++) {
		tags[i] = (char)vocab_tag(hash);
		memcpy(slots + i * sizeof(struct vocab_slot) + 4, &at_len, 4);
	}
	assert_int_equal(vocab_rank(&vocab.tables[0], "hello", 5), VOCAB_NONE);
	memset(tags, (char)(vocab_tag(hash) ^ 0x80), h.extents[0].slots);
	assert_int_equal(vocab_rank(&vocab.tables[0], "hello", 5), VOCAB_NONE);
	free(copy);
}

static void
files(void **state)
{
	char dir[] = "/tmp/sluice-vocab-XXXXXX", path[64];
	struct vocab vocab;
	struct why why;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/x", dir);
	assert_int_equal(vocab_open(path, &vocab, &why), ERR_NOT_FOUND);
	assert_non_null(strstr(why.text, path));
	assert_int_equal(vocab_open(dir, &vocab, &why), ERR_BAD_INPUT);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(vocab_open(path, &vocab, &why), ERR_BAD_INPUT);
	assert_int_equal(fwrite(real.file.p, 1, 100000, f), 100000);
	fclose(f);
	assert_int_equal(vocab_open(path, &vocab, &why), ERR_BAD_INPUT);
	assert_non_null(strstr(why.text, "it is cut"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(vocab_open(path, &vocab, &why), ERR_BAD_INPUT);
	unlink(path);
	rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ranks),
	    cmocka_unit_test(bytes_and_pairs),
	    cmocka_unit_test(headers),
	    cmocka_unit_test(lengths),
	    cmocka_unit_test(spoiled),
	    cmocka_unit_test(bent),
	    cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
