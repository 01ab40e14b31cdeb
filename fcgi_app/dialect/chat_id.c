#include "dialect/chat_id.h"

#include "base/digest.h"

#define HEX 24

struct span
chat_id_make(struct arena *arena, struct span answer, size_t position, struct span name)
{
	unsigned char digest[DIGEST_BYTES];
	char number[24], *out;
	struct buf *text = arena_buf(arena, answer.n + name.n + sizeof number + 8);
	struct span head = SPAN("call_");

	buf_span(text, answer);
	buf_print(text, "\n%zu\n", position);
	buf_span(text, name);
	digest_sha256(buf_text(text), digest);
	out = arena_alloc(arena, head.n + HEX + 1);
	memcpy(out, head.p, head.n);
	for (size_t i = 0; i < HEX; i++)
		out[head.n + i] =
		    "0123456789abcdef"[i % 2 == 0 ? digest[i / 2] >> 4 : digest[i / 2] & 15];
	return (struct span){out, head.n + HEX};
}
