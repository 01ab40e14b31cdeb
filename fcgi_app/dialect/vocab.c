#include "dialect/vocab.h"

#include "base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((off_t)1 << 28)

static uint64_t
load(const char *p, size_t n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return v;
}

static uint64_t
mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ (b << 29 | b >> 35)) * 0x9e3779b97f4a7c15u;

	h = (h ^ h >> 32 ^ b) * 0xbf58476d1ce4e5b9u;
	return h ^ h >> 29;
}

/* Two overlapping reads hold all of up to 16 bytes. */
uint64_t
vocab_hash(const char *p, size_t n)
{
	const unsigned char *u = (const unsigned char *)p;
	uint64_t h = n;

	for (; n > 16; p += 8, n -= 8)
		h = mix(h, load(p, 8));
	if (n >= 8)
		return mix(load(p, 8) ^ h, load(p + n - 8, 8));
	if (n >= 4)
		return mix(load(p, 4) ^ h << 32, load(p + n - 4, 4));
	if (n > 0)
		return mix((uint64_t)u[0] << 16 | (uint64_t)u[n >> 1] << 8 | u[n - 1], h);
	return h;
}

unsigned char
vocab_tag(uint64_t hash)
{
	unsigned char tag = (unsigned char)(hash >> 56);

	return tag == 0 ? 1 : tag;
}

/* memcmp() with a length that is not known costs more than the search. */
static bool
are_same(const char *a, const char *b, size_t n)
{
	if (n > 16)
		return memcmp(a, b, n) == 0;
	if (n >= 8)
		return load(a, 8) == load(b, 8) && load(a + n - 8, 8) == load(b + n - 8, 8);
	if (n >= 4)
		return load(a, 4) == load(b, 4) && load(a + n - 4, 4) == load(b + n - 4, 4);
	return n == 0 || (a[0] == b[0] && a[n >> 1] == b[n >> 1] && a[n - 1] == b[n - 1]);
}

/* Four lanes, so that the multiplications do not wait for each other. */
uint64_t
vocab_sum(const void *bytes, size_t n)
{
	uint64_t lanes[4] = {1, 2, 3, 4};
	const char *p = bytes;
	size_t left = n;

	for (; left >= 32; p += 32, left -= 32)
		for (size_t i = 0; i < 4; i++)
			lanes[i] = (lanes[i] ^ load(p + 8 * i, 8)) * 0x9e3779b97f4a7c15u;
	for (; left > 0; p++, left--)
		lanes[0] = (lanes[0] ^ (unsigned char)*p) * 0x9e3779b97f4a7c15u;
	return mix(mix(lanes[0], lanes[1]), mix(lanes[2], lanes[3])) ^ n;
}

uint32_t
vocab_rank(const struct vocab_table *t, const char *p, size_t n)
{
	uint64_t hash = vocab_hash(p, n);
	uint32_t at = (uint32_t)hash & t->mask;
	unsigned char tag = vocab_tag(hash);

	for (uint32_t i = 0; i < t->probes; i++, at = (at + 1) & t->mask) {
		const struct vocab_slot *s = &t->slots[at];
		uint32_t from;

		if (t->tags[at] == 0)
			return VOCAB_NONE;
		if (t->tags[at] != tag)
			continue;
		from = s->at_len >> 8;
		if ((s->at_len & 0xff) == n && from + n <= t->nbytes &&
		    are_same(t->bytes + from, p, n))
			return s->rank;
	}
	return VOCAB_NONE;
}

static bool
lies_within(uint64_t at, uint64_t n, uint64_t size)
{
	return at % 8 == 0 && at >= sizeof(struct vocab_header) && at <= size && n <= size - at;
}

static bool
extent_is_sound(const struct vocab_extent *e, uint64_t size)
{
	return e->slots > 0 && e->slots <= VOCAB_SLOTS_MAX && (e->slots & (e->slots - 1)) == 0 &&
	       e->tokens < e->slots && e->bytes <= VOCAB_BYTES_MAX && e->longest <= VOCAB_LONGEST &&
	       e->probes <= VOCAB_PROBES_MAX && lies_within(e->tags_at, e->slots, size) &&
	       lies_within(e->pairs_at, VOCAB_PAIRS * sizeof(uint32_t), size) &&
	       lies_within(e->slots_at, (uint64_t)e->slots * sizeof(struct vocab_slot), size) &&
	       lies_within(e->bytes_at, e->bytes, size);
}

static const char *
fault_of(const struct vocab_header *h, size_t size)
{
	if (memcmp(h->magic, VOCAB_MAGIC, sizeof h->magic) != 0)
		return "it is no file of token ranks";
	if (h->order != VOCAB_ORDER)
		return "it was made on a machine with another order of bytes";
	if (h->version != VOCAB_VERSION)
		return "it is of another version";
	if (h->head_sum != vocab_sum(h, offsetof(struct vocab_header, head_sum)))
		return "its header is damaged";
	if (h->size != size)
		return "it is cut, or something was added";
	for (size_t i = 0; i < VOCAB__MAX; i++)
		if (!extent_is_sound(&h->extents[i], size))
			return "its header makes no sense";
	return NULL;
}

enum err
vocab_read(struct span file, struct vocab *vocab_out, struct why *why)
{
	struct vocab_header h;
	const char *fault;

	if (file.n < sizeof h || (uintptr_t)file.p % 8 != 0) {
		err_why(why, "it is no file of token ranks");
		return ERR_BAD_INPUT;
	}
	memcpy(&h, file.p, sizeof h);
	fault = fault_of(&h, file.n);
	if (fault != NULL) {
		err_why(why, "%s", fault);
		return ERR_BAD_INPUT;
	}
	vocab_out->file = file;
	for (size_t i = 0; i < VOCAB__MAX; i++)
		vocab_out->tables[i] = (struct vocab_table){
		    .tags = (const unsigned char *)(file.p + h.extents[i].tags_at),
		    .slots = (const void *)(file.p + h.extents[i].slots_at),
		    .pairs = (const void *)(file.p + h.extents[i].pairs_at),
		    .bytes = file.p + h.extents[i].bytes_at,
		    .mask = h.extents[i].slots - 1,
		    .nbytes = h.extents[i].bytes,
		    .longest = h.extents[i].longest,
		    .probes = h.extents[i].probes,
		};
	return ERR_OK;
}

bool
vocab_whole(const struct vocab *vocab)
{
	struct vocab_header h;

	memcpy(&h, vocab->file.p, sizeof h);
	return h.sum == vocab_sum(vocab->file.p + sizeof h, vocab->file.n - sizeof h) &&
	       !vocab_is_lost(vocab);
}

static enum err
map(int fd, struct span *file_out, struct why *why)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) != 0) {
		err_why(why, "%s", strerror(errno));
		return ERR_IO;
	}
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct vocab_header) ||
	    st.st_size > FILE_MAX) {
		err_why(why, "it is no file of token ranks");
		return ERR_BAD_INPUT;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		err_why(why, "it cannot be mapped: %s", strerror(errno));
		return ERR_IO;
	}
	*file_out = (struct span){p, (size_t)st.st_size};
	guard_add(*file_out);
	return ERR_OK;
}

static void
unmap(struct span file)
{
	guard_remove(file);
	munmap((void *)(uintptr_t)file.p, file.n);
}

enum err
vocab_open(const char *path, struct vocab *vocab_out, struct why *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), fault = errno;
	struct span file;
	enum err err;

	if (fd < 0) {
		err_why(why, "%s: %s", path, strerror(fault));
		return fault == ENOENT || fault == ENOTDIR ? ERR_NOT_FOUND : ERR_IO;
	}
	err = map(fd, &file, why);
	close(fd);
	if (err == ERR_OK) {
		err = vocab_read(file, vocab_out, why);
		if (err != ERR_OK)
			unmap(file);
	}
	if (err != ERR_OK)
		err_prefix(why, "%s", path);
	return err;
}

bool
vocab_is_lost(const struct vocab *vocab)
{
	return guard_is_lost(vocab->file);
}

void
vocab_close(struct vocab *vocab)
{
	unmap(vocab->file);
	*vocab = (struct vocab){.file = {NULL, 0}};
}
