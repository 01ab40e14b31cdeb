#include "dialect/picture.h"

#define SEGMENTS_MAX 1000 /* of a JPEG before its frame */
#define EDGE_MAX 1568
#define AREA_TOKEN 750
#define CLAUDE_MAX 1600
#define TILE 512
#define PATCH 32
#define PATCHES_MAX 1536

static int
value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : 0;
}

/* Byte `at` of what it decodes to; 0 behind its end. */
static unsigned
byte_at(struct span base64, size_t at)
{
	size_t i = at / 3 * 4 + at % 3;
	unsigned two;

	if (i + 1 >= base64.n)
		return 0;
	two = (unsigned)value_of(base64.p[i]) << 6 | (unsigned)value_of(base64.p[i + 1]);
	return two >> (4 - at % 3 * 2) & 0xff;
}

static uint32_t
big(struct span base64, size_t at, unsigned n)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v = v << 8 | byte_at(base64, at + i);
	return v;
}

static uint32_t
little(struct span base64, size_t at, unsigned n)
{
	uint32_t v = 0;

	for (unsigned i = n; i > 0; i--)
		v = v << 8 | byte_at(base64, at + i - 1);
	return v;
}

static bool
has(struct span base64, size_t at, const char *bytes)
{
	for (size_t i = 0; bytes[i] != '\0'; i++)
		if (byte_at(base64, at + i) != (unsigned char)bytes[i])
			return false;
	return true;
}

/* Segments up to the one that tells the frame. */
static bool
jpeg(struct span b, struct picture_size *out)
{
	size_t at = 2;

	for (unsigned i = 0; i < SEGMENTS_MAX && at < b.n; i++) {
		unsigned marker = byte_at(b, at + 1), length = big(b, at + 2, 2);

		if (byte_at(b, at) != 0xff)
			return false;
		if (marker == 0xff) { /* fill */
			at++;
			continue;
		}
		if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
		    marker != 0xcc) {
			*out = (struct picture_size){big(b, at + 7, 2), big(b, at + 5, 2)};
			return true;
		}
		if (length < 2)
			return false;
		at += 2 + (size_t)length;
	}
	return false;
}

static bool
webp(struct span b, struct picture_size *out)
{
	if (has(b, 12, "VP8X")) {
		*out = (struct picture_size){little(b, 24, 3) + 1, little(b, 27, 3) + 1};
		return true;
	}
	if (has(b, 12, "VP8L")) {
		uint32_t bits = little(b, 21, 4);

		*out = (struct picture_size){(bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1};
		return true;
	}
	*out = (struct picture_size){little(b, 26, 2) & 0x3fff, little(b, 28, 2) & 0x3fff};
	return has(b, 12, "VP8 ");
}

static bool
any(struct span b, struct picture_size *out)
{
	if (has(b, 0, "\x89PNG\r\n\x1a\n")) {
		*out = (struct picture_size){big(b, 16, 4), big(b, 20, 4)};
		return true;
	}
	if (has(b, 0, "GIF8")) {
		*out = (struct picture_size){little(b, 6, 2), little(b, 8, 2)};
		return true;
	}
	if (has(b, 0, "RIFF") && has(b, 8, "WEBP"))
		return webp(b, out);
	return has(b, 0, "\xff\xd8") && jpeg(b, out);
}

bool
picture_size(struct span base64, struct picture_size *size_out)
{
	struct picture_size size;

	if (!any(base64, &size) || size.width == 0 || size.height == 0)
		return false;
	*size_out = size;
	return true;
}

/* Smaller in proportion, so that `edge` becomes `most`. */
static struct picture_size
shrink(struct picture_size s, uint32_t edge, uint32_t most)
{
	if (edge <= most)
		return s;
	s.width = (uint32_t)((uint64_t)s.width * most / edge);
	s.height = (uint32_t)((uint64_t)s.height * most / edge);
	return (struct picture_size){s.width > 0 ? s.width : 1, s.height > 0 ? s.height : 1};
}

int64_t
picture_tokens_claude(const struct picture_size *size)
{
	struct picture_size s =
	    shrink(*size, size->width > size->height ? size->width : size->height, EDGE_MAX);
	int64_t n = ((int64_t)s.width * s.height + AREA_TOKEN - 1) / AREA_TOKEN;

	return n < CLAUDE_MAX ? n : CLAUDE_MAX;
}

/* Tokens: formats.md G.5. The first that fits counts. */
static const struct {
	const char *prefix;
	struct picture_price price;
} prices[] = {
    {"gpt-4o-mini", {2833, 5667, 0}},
    {"gpt-4.1-mini", {0, 0, 162}},
    {"gpt-4.1-nano", {0, 0, 246}},
    {"gpt-5-mini", {0, 0, 162}},
    {"gpt-5-nano", {0, 0, 246}},
    {"gpt-5", {70, 140, 0}},
    {"o4-mini", {0, 0, 172}},
    {"o1", {75, 150, 0}},
    {"o3", {75, 150, 0}},
    {"", {85, 170, 0}},
};

struct picture_price
picture_price(struct span model)
{
	size_t i = 0;

	while (!text_starts_fold(model, prices[i].prefix))
		i++;
	return prices[i].price;
}

static uint64_t
min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
up(uint64_t n, uint64_t by)
{
	return (n + by - 1) / by;
}

/* The largest whole number whose square is no more; for small ones. */
static uint64_t
root(uint64_t square)
{
	uint64_t n = 0;

	while ((n + 1) * (n + 1) <= square)
		n++;
	return n > 0 ? n : 1;
}

/* Too many are scaled down in proportion, so that one edge is of whole patches. */
static uint64_t
patches(uint64_t w, uint64_t h)
{
	uint64_t all = up(w, PATCH) * up(h, PATCH), wide, high;

	if (all <= PATCHES_MAX)
		return all;
	wide = root(min64(PATCHES_MAX * w / h, (uint64_t)PATCHES_MAX * PATCHES_MAX));
	high = root(min64(PATCHES_MAX * h / w, (uint64_t)PATCHES_MAX * PATCHES_MAX));
	return wide * h < high * w ? wide * up(wide * h, w) : high * up(high * w, h);
}

static int64_t
tiles(const struct picture_size *size)
{
	struct picture_size s =
	    shrink(*size, size->width > size->height ? size->width : size->height, 2048);

	s = shrink(s, s.width < s.height ? s.width : s.height, 768);
	return (int64_t)(up(s.width, TILE) * up(s.height, TILE));
}

int64_t
picture_tokens(const struct picture_price *price, const struct picture_size *size, bool low)
{
	if (price->patch_hundredths > 0)
		return (int64_t)up(
		    patches(size->width, size->height) * price->patch_hundredths, 100);
	return price->base + (low ? 0 : tiles(size) * price->tile);
}
