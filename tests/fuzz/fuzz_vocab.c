/*
 * A file of token ranks with anything behind a header that is sound, or nearly: it is refused, or searches and merges stay
 * within it, and every byte of a piece is in one token.
 */
#include "dialect/bpe.h"

#include <stddef.h>
#include <string.h>

#define SLOTS 64
#define BYTES 1024
#define TABLE (SLOTS + SLOTS * sizeof(struct vocab_slot) + VOCAB_PAIRS * sizeof(uint32_t) + BYTES)
#define FILE_BYTES (sizeof(struct vocab_header) + VOCAB__MAX * TABLE)
#define MUST(condition) ((condition) ? (void)0 : die("%s", #condition))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct vocab_header
header(void)
{
	struct vocab_header h = {
	    .magic = VOCAB_MAGIC, .order = VOCAB_ORDER, .version = VOCAB_VERSION};
	uint64_t at = sizeof h;

	for (size_t i = 0; i < VOCAB__MAX; i++) {
		h.extents[i] = (struct vocab_extent){.tags_at = at,
		    .slots_at = at + SLOTS,
		    .pairs_at = at + SLOTS + SLOTS * sizeof(struct vocab_slot),
		    .bytes_at = at + TABLE - BYTES,
		    .slots = SLOTS,
		    .bytes = BYTES,
		    .tokens = SLOTS - 1,
		    .longest = VOCAB_LONGEST,
		    .probes = VOCAB_PROBES_MAX};
		at += TABLE;
	}
	h.size = at;
	return h;
}

static void
count(const struct vocab *vocab, struct span text)
{
	static struct bpe_room room;
	static uint32_t ids[4096];

	for (size_t i = 0; i < VOCAB__MAX; i++) {
		struct bpe_ids list = {ids, 0, 4096};
		size_t tokens = bpe_count(&vocab->tables[i], text, &room, &list);

		MUST(tokens <= text.n && (tokens > 0 || text.n == 0));
		MUST(bpe_count(&vocab->tables[i], text, &room, NULL) == tokens);
		MUST(list.n == tokens || list.n == list.cap);
	}
}

/* All pairs are tokens of the first time's making: filling them takes too long. */
static void
fill(char *file, const struct vocab_header *h, struct span with)
{
	static bool filled;

	if (!filled)
		for (size_t i = 0; i < FILE_BYTES; i++)
			file[i] = (char)(i * 31);
	filled = true;
	memcpy(file, h, sizeof *h);
	for (size_t t = 0; t < VOCAB__MAX; t++) {
		char *table = file + sizeof *h + t * TABLE;

		for (size_t i = 0; i < SLOTS * (1 + sizeof(struct vocab_slot)); i++)
			table[i] = with.p[i % with.n];
		for (size_t i = 0; i < BYTES; i++)
			table[TABLE - BYTES + i] = with.p[i % with.n];
	}
}

/* The first two bytes say which of the header's are replaced, and by what. */
int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static _Alignas(8) char file[FILE_BYTES];
	struct vocab_header h = header();
	struct vocab vocab;

	if (n < 3)
		return 0;
	if (bytes[0] != 0)
		((unsigned char *)&h)[bytes[0]] = bytes[1];
	h.head_sum = vocab_sum(&h, offsetof(struct vocab_header, head_sum));
	fill(file, &h, (struct span){(const char *)bytes + 2, n - 2});
	if (vocab_read((struct span){file, FILE_BYTES}, &vocab, NULL) == ERR_OK)
		count(&vocab, (struct span){(const char *)bytes, n});
	MUST(vocab_read((struct span){file, n % sizeof h}, &vocab, NULL) == ERR_BAD_INPUT);
	return 0;
}
