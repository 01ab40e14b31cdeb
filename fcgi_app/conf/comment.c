#include "conf/comment.h"

#include "base/text.h"

/* The end of the comment that begins at `at`, or 0 if it has none. */
static size_t
end_of_comment(struct span text, size_t at)
{
	struct span rest = text_from(text, at + 2);
	size_t end;

	if (text.p[at + 1] == '/')
		return at + 2 + text_find(rest, SPAN("\n"));
	end = text_find(rest, SPAN("*/"));
	return end == rest.n ? 0 : at + 2 + end + 2;
}

static bool
is_comment(struct span text, size_t at)
{
	return text.p[at] == '/' && at + 1 < text.n &&
	       (text.p[at + 1] == '/' || text.p[at + 1] == '*');
}

/* A string ends with its line, so that a lost quote harms only that. */
static size_t
end_of_string(struct span text, size_t at)
{
	for (at++; at < text.n && text.p[at] != '"' && text.p[at] != '\n'; at++)
		if (text.p[at] == '\\' && at + 1 < text.n && text.p[at + 1] != '\n')
			at++;
	return at + 1;
}

bool
comment_blank(char *text, size_t n, size_t *bad_out)
{
	struct span all = {text, n};
	size_t i = 0, end;

	while (i < n) {
		if (text[i] == '"') {
			i = end_of_string(all, i);
			continue;
		}
		if (!is_comment(all, i)) {
			i++;
			continue;
		}
		end = end_of_comment(all, i);
		if (end == 0) {
			*bad_out = i;
			return false;
		}
		for (; i < end; i++)
			if (text[i] != '\n')
				text[i] = ' ';
	}
	return true;
}
