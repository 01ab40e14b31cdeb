#include "dialect/seal.h"

#include "base/digest.h"

#include <string.h>

#define MARK "sl1."
#define OWNER_HEX 12

static const char letters[FORM_WIRE__MAX] = {
    [FORM_CHAT] = 'c', [FORM_MESSAGES] = 'm', [FORM_RESPONSES] = 'r'};

static void
owner_of(struct span channel, char out[OWNER_HEX])
{
	unsigned char digest[DIGEST_BYTES];

	digest_sha256(channel, digest);
	for (size_t i = 0; i < OWNER_HEX; i++)
		out[i] = "0123456789abcdef"[i % 2 == 0 ? digest[i / 2] >> 4 : digest[i / 2] & 15];
}

struct span
seal_make(struct arena *arena, enum form_wire wire, struct span channel, struct span payload)
{
	char head[] = MARK "?.............";

	head[4] = letters[wire];
	owner_of(channel, head + 6);
	return text_span(arena_join(
	    arena, (const struct span[]){{head, sizeof head - 1}, SPAN("."), payload}, 3));
}

struct seal
seal_open(struct span text)
{
	struct seal seal = {.payload = text};
	size_t head = sizeof MARK - 1 + 2 + OWNER_HEX + 1;

	if (text.n < head || !text_starts(text, MARK) || text.p[5] != '.' ||
	    text.p[head - 1] != '.')
		return seal;
	for (size_t i = 0; i < FORM_WIRE__MAX; i++)
		if (text.p[4] == letters[i]) {
			seal.marked = true;
			seal.wire = (enum form_wire)i;
			seal.payload = text_from(text, head);
		}
	return seal;
}

bool
seal_fits(struct span text, enum form_wire wire, struct span channel, struct span *payload_out)
{
	struct seal seal = seal_open(text);
	char owner[OWNER_HEX];

	if (!seal.marked || seal.wire != wire)
		return false;
	owner_of(channel, owner);
	if (memcmp(text.p + 6, owner, OWNER_HEX) != 0)
		return false;
	*payload_out = seal.payload;
	return true;
}
