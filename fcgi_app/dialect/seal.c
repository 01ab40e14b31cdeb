#include "dialect/seal.h"

#include "base/digest.h"

#include <string.h>

#define MARK "sl1."
#define OWNER_HEX 12

static const char letters[FORM_WIRE__MAX] = {
    [FORM_CHAT] = 'c', [FORM_MESSAGES] = 'm', [FORM_RESPONSES] = 'r'};

struct span
seal_make(struct arena *arena, enum form_wire wire, struct span channel, struct span payload)
{
	char head[] = MARK "?.............";

	head[4] = letters[wire];
	digest_hex(channel, OWNER_HEX, head + 6);
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
	digest_hex(channel, OWNER_HEX, owner);
	if (memcmp(text.p + 6, owner, OWNER_HEX) != 0)
		return false;
	*payload_out = seal.payload;
	return true;
}
