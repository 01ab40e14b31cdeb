#include "dialect/chat_id.h"

#include "base/digest.h"

#define HEX 24

struct span
chat_id_make(struct arena *arena, struct span answer, size_t position, struct span name)
{
	char number[24], *out;
	struct buf *text = arena_buf(arena, answer.n + name.n + sizeof number + 8);
	struct span head = SPAN("call_");

	buf_span(text, answer);
	buf_print(text, "\n%zu\n", position);
	buf_span(text, name);
	out = arena_alloc(arena, head.n + HEX + 1);
	memcpy(out, head.p, head.n);
	digest_hex(buf_text(text), HEX, out + head.n);
	return (struct span){out, head.n + HEX};
}
