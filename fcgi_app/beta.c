#include "beta.h"

static bool
has_flag(struct span list, struct span flag)
{
	struct span word;

	while (text_token(&list, ",", &word))
		if (text_equal(word, flag))
			return true;
	return false;
}

struct span
beta_merge(struct arena *arena, const struct span *lists, size_t n)
{
	struct buf *out;
	size_t room = 1;

	for (size_t i = 0; i < n; i++)
		room += lists[i].n + 1;
	out = arena_buf(arena, room);
	for (size_t i = 0; i < n; i++) {
		struct span rest = lists[i], flag;

		while (text_token(&rest, ",", &flag)) {
			flag = text_trim(flag);
			if (flag.n == 0 || has_flag(buf_text(out), flag))
				continue;
			if (out->n > 0)
				buf_char(out, ',');
			buf_span(out, flag);
		}
	}
	return buf_text(out);
}
