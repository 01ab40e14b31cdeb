#include "conf/tree.h"

#include "conf/comment.h"

#include <stdlib.h>
#include <string.h>

struct parse {
	struct arena *arena;
	char *p;
	size_t n, at;
	size_t line, line_at; /* line_at: where the line begins */
	size_t nodes;
	unsigned depth;
	struct why *why;
};

static bool parse_value(struct parse *ps, struct tree *node);

static bool
refuse(struct parse *ps, const char *what)
{
	err_why(ps->why, "column %zu: %s", ps->at - ps->line_at + 1, what);
	return false;
}

static void
skip_blanks(struct parse *ps)
{
	for (; ps->at < ps->n; ps->at++) {
		char c = ps->p[ps->at];

		if (c == '\n') {
			ps->line++;
			ps->line_at = ps->at + 1;
		} else if (c != ' ' && c != '\t' && c != '\r') {
			break;
		}
	}
}

/* The next byte of interest, NUL at the end. */
static char
peek(struct parse *ps)
{
	skip_blanks(ps);
	return ps->at < ps->n ? ps->p[ps->at] : '\0';
}

static bool
hex4(const struct parse *ps, size_t at, unsigned *out)
{
	unsigned v = 0;

	if (at + 4 > ps->n)
		return false;
	for (size_t i = at; i < at + 4; i++) {
		char c = text_lower(ps->p[i]);

		if (c >= '0' && c <= '9')
			v = v * 16 + (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (unsigned)(c - 'a') + 10;
		else
			return false;
	}
	*out = v;
	return true;
}

static size_t
put_utf8(char *dst, unsigned c)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = n - 1; i > 0; i--) {
		dst[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	dst[0] = (char)(first[n] | c);
	return n;
}

/* At the 'u' of an escape; its bytes are put at *dst, which is behind. */
static bool
parse_unicode(struct parse *ps, char **dst)
{
	unsigned c, low;

	if (!hex4(ps, ps->at + 1, &c))
		return refuse(ps, "\\u wants four hexadecimal digits");
	if (c == 0)
		return refuse(ps, "\\u0000 is not allowed");
	ps->at += 5;
	if (c >= 0xd800 && c <= 0xdfff) {
		bool paired = c < 0xdc00 && ps->at + 6 <= ps->n && ps->p[ps->at] == '\\' &&
		              ps->p[ps->at + 1] == 'u' && hex4(ps, ps->at + 2, &low) &&
		              low >= 0xdc00 && low <= 0xdfff;

		if (!paired)
			return refuse(ps, "half of a surrogate pair");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
		ps->at += 6;
	}
	*dst += put_utf8(*dst, c);
	return true;
}

static bool
parse_escape(struct parse *ps, char **dst)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = ++ps->at < ps->n ? ps->p[ps->at] : '\0';
	const char *known = c == '\0' ? NULL : strchr(from, c);

	if (c == 'u')
		return parse_unicode(ps, dst);
	if (known == NULL)
		return refuse(ps, "unknown escape in a string");
	*(*dst)++ = to[known - from];
	ps->at++;
	return true;
}

static bool
parse_string(struct parse *ps, struct span *out)
{
	char *start = ps->p + ++ps->at, *dst = start;

	while (ps->at < ps->n) {
		char c = ps->p[ps->at];

		if (c == '"') {
			ps->at++;
			*out = (struct span){start, (size_t)(dst - start)};
			return true;
		}
		if (c == '\n')
			return refuse(ps, "the string has no end on its line");
		if ((unsigned char)c < 0x20)
			return refuse(ps, "raw control character in a string");
		if (c == '\\') {
			if (!parse_escape(ps, &dst))
				return false;
			continue;
		}
		*dst++ = c;
		ps->at++;
	}
	return refuse(ps, "the string has no end");
}

static size_t
digits(const struct parse *ps, size_t at)
{
	size_t n = 0;

	while (at + n < ps->n && ps->p[at + n] >= '0' && ps->p[at + n] <= '9')
		n++;
	return n;
}

static bool
is_at(const struct parse *ps, size_t at, char lower)
{
	return at < ps->n && text_lower(ps->p[at]) == lower;
}

static bool
parse_number(struct parse *ps, struct tree *node)
{
	size_t at = is_at(ps, ps->at, '-') ? ps->at + 1 : ps->at, whole = digits(ps, at), n;
	bool fine = whole == 1 || (whole > 1 && ps->p[at] != '0');

	at += whole;
	if (is_at(ps, at, '.')) {
		n = digits(ps, at + 1);
		fine = fine && n > 0;
		at += 1 + n;
	}
	if (is_at(ps, at, 'e')) {
		at += is_at(ps, at + 1, '-') || is_at(ps, at + 1, '+') ? 2 : 1;
		n = digits(ps, at);
		fine = fine && n > 0;
		at += n;
	}
	if (!fine)
		return refuse(ps, "not a JSON number");
	node->type = TREE_NUMBER;
	node->text = (struct span){ps->p + ps->at, at - ps->at};
	ps->at = at;
	return true;
}

static bool
parse_word(struct parse *ps, struct tree *node)
{
	static const struct {
		const char *z;
		enum tree_type type;
	} words[] = {{"null", TREE_NULL}, {"false", TREE_FALSE}, {"true", TREE_TRUE}};

	for (size_t i = 0; i < NELEM(words); i++) {
		if (!text_starts((struct span){ps->p + ps->at, ps->n - ps->at}, words[i].z))
			continue;
		node->type = words[i].type;
		ps->at += strlen(words[i].z);
		return true;
	}
	return refuse(ps, "a value was expected here");
}

static int
by_key(const void *a, const void *b)
{
	const struct tree *x = *(const struct tree *const *)a, *y = *(const struct tree *const *)b;
	size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
	int order = n == 0 ? 0 : memcmp(x->key.p, y->key.p, n);

	if (order != 0)
		return order;
	if (x->key.n != y->key.n)
		return x->key.n < y->key.n ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* Sorted, not compared each with each: a file of 8 MB may hold very many. */
static void
mark_repeated(struct parse *ps, const struct tree *object)
{
	struct tree **all;
	size_t i = 0;

	if (object->n < 2)
		return;
	all = arena_alloc(ps->arena, object->n * sizeof(struct tree *));
	for (struct tree *t = object->first; t != NULL; t = t->next)
		all[i++] = t;
	qsort(all, i, sizeof(struct tree *), by_key);
	while (--i > 0)
		all[i]->repeated = text_equal(all[i]->key, all[i - 1]->key);
}

/* One child: [ name ':' ] value. */
static bool
parse_child(struct parse *ps, struct tree *parent, struct tree *node)
{
	node->parent = parent;
	node->index = parent->n++;
	node->line = ps->line;
	if (parent->type == TREE_OBJECT) {
		if (peek(ps) != '"')
			return refuse(ps, "a name in double quotes was expected here");
		node->line = ps->line;
		if (!parse_string(ps, &node->key))
			return false;
		if (peek(ps) != ':')
			return refuse(ps, "':' was expected here");
		ps->at++;
	}
	return parse_value(ps, node);
}

static bool
parse_children(struct parse *ps, struct tree *parent, char closer)
{
	struct tree **link = &parent->first;

	ps->at++;
	if (peek(ps) == closer) {
		ps->at++;
		return true;
	}
	for (;;) {
		char c;

		if (++ps->nodes > TREE_NODES_MAX)
			return refuse(ps, "too many values in one file");
		peek(ps);
		*link = arena_alloc(ps->arena, sizeof **link);
		if (!parse_child(ps, parent, *link))
			return false;
		link = &(*link)->next;
		c = peek(ps);
		if (c != ',' && c != closer)
			return refuse(ps, closer == '}' ? "',' or '}' was expected here"
			                                : "',' or ']' was expected here");
		ps->at++;
		if (c == closer)
			return true;
		if (peek(ps) == closer)
			return refuse(ps, "no comma may stand before this");
	}
}

static bool
parse_nest(struct parse *ps, struct tree *node, char opener)
{
	bool fine;

	if (++ps->depth > TREE_DEPTH_MAX)
		return refuse(ps, "nested too deeply (16 levels are allowed)");
	node->type = opener == '{' ? TREE_OBJECT : TREE_ARRAY;
	fine = parse_children(ps, node, opener == '{' ? '}' : ']');
	ps->depth--;
	if (fine && opener == '{')
		mark_repeated(ps, node);
	return fine;
}

static bool
parse_value(struct parse *ps, struct tree *node)
{
	char c = peek(ps);

	if (node->key.p == NULL)
		node->line = ps->line;
	if (c == '{' || c == '[')
		return parse_nest(ps, node, c);
	if (c == '-' || (c >= '0' && c <= '9'))
		return parse_number(ps, node);
	if (c != '"')
		return parse_word(ps, node);
	node->type = TREE_STRING;
	return parse_string(ps, &node->text);
}

/* Where the parser stopped before it counted lines itself. */
static void
count_lines(struct parse *ps, size_t at)
{
	ps->line = 1;
	ps->line_at = 0;
	for (size_t i = 0; i < at; i++)
		if (ps->p[i] == '\n') {
			ps->line++;
			ps->line_at = i + 1;
		}
}

static bool
parse_all(struct parse *ps, struct tree *root)
{
	if (text_starts((struct span){ps->p, ps->n}, "\xef\xbb\xbf"))
		memset(ps->p, ' ', 3);
	if (!comment_blank(ps->p, ps->n, &ps->at)) {
		count_lines(ps, ps->at);
		return refuse(ps, "this comment has no end");
	}
	if (!parse_value(ps, root))
		return false;
	peek(ps);
	return ps->at == ps->n || refuse(ps, "text after the end of the document");
}

static size_t
first_bad_utf8(struct span text)
{
	size_t good = 0, end;

	while (good < text.n) {
		end = good + text_find(text_from(text, good), SPAN("\n"));
		if (!text_utf8((struct span){text.p + good, end - good}))
			return good;
		good = end + 1;
	}
	return text.n;
}

enum err
tree_parse(struct arena *arena, char *text, size_t n, const struct tree **root_out,
    size_t *line_out, struct why *why)
{
	struct parse ps = {.arena = arena, .p = text, .n = n, .line = 1, .why = why};
	struct tree *root = arena_alloc(arena, sizeof *root);

	if (!text_utf8((struct span){text, n})) {
		count_lines(&ps, first_bad_utf8((struct span){text, n}));
		*line_out = ps.line;
		err_why(why, "not valid UTF-8");
		return ERR_BAD_INPUT;
	}
	if (!parse_all(&ps, root)) {
		*line_out = ps.line;
		return ERR_BAD_INPUT;
	}
	*root_out = root;
	return ERR_OK;
}

const struct tree *
tree_member(const struct tree *object, struct span name)
{
	if (object == NULL || object->type != TREE_OBJECT)
		return NULL;
	for (const struct tree *t = object->first; t != NULL; t = t->next)
		if (text_equal(t->key, name))
			return t;
	return NULL;
}

const struct tree *
tree_at(const struct tree *root, const char *path)
{
	struct span rest = text_span(path), name;

	while (root != NULL && text_token(&rest, ".", &name))
		root = tree_member(root, name);
	return root;
}

const struct tree *
tree_next(const struct tree *root, const struct tree *node)
{
	if (node->first != NULL)
		return node->first;
	while (node != root && node->next == NULL)
		node = node->parent;
	return node == root ? NULL : node->next;
}

void
tree_path(const struct tree *node, const char *member, struct buf *out)
{
	const struct tree *chain[TREE_DEPTH_MAX + 2];
	size_t n = 0;

	for (; node != NULL && node->parent != NULL && n < NELEM(chain); node = node->parent)
		chain[n++] = node;
	while (n-- > 0) {
		char key[128];

		if (chain[n]->parent->type == TREE_ARRAY) {
			buf_print(out, "[%zu]", chain[n]->index);
			continue;
		}
		text_clean(key, sizeof key, chain[n]->key);
		buf_print(out, "%s%s", out->n > 0 ? "." : "", key);
	}
	if (member != NULL)
		buf_print(out, "%s%s", out->n > 0 ? "." : "", member);
}

const char *
tree_type_name(enum tree_type type)
{
	static const char *const names[] = {
	    [TREE_NULL] = "null",
	    [TREE_FALSE] = "a boolean",
	    [TREE_TRUE] = "a boolean",
	    [TREE_NUMBER] = "a number",
	    [TREE_STRING] = "a string",
	    [TREE_ARRAY] = "a list",
	    [TREE_OBJECT] = "an object",
	};

	return names[type];
}
