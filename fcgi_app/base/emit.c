#include "base/emit.h"

#include "base/date.h"
#include "base/lex.h"

/* How many bytes from the beginning may be copied. */
static size_t
clean_run(struct span s)
{
	size_t i = 0, step;

	do {
		i += lex_plain(text_from(s, i));
		step = i < s.n && (unsigned char)s.p[i] >= 0x80 ? lex_utf8(text_from(s, i)) : 0;
		i += step;
	} while (step > 0);
	return i;
}

static void
put_byte(struct buf *out, char c)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char u = (unsigned char)c;

	if (u >= 0x80)
		buf_z(out, "\xef\xbf\xbd");
	else if (c == '"' || c == '\\')
		buf_add(out, (const char[]){'\\', c}, 2);
	else if (c == '\n')
		buf_z(out, "\\n");
	else
		buf_add(out, (const char[]){'\\', 'u', '0', '0', hex[u >> 4], hex[u & 15]}, 6);
}

void
emit_quoted(struct buf *out, struct span s)
{
	buf_char(out, '"');
	while (s.n > 0) {
		size_t n = clean_run(s);

		buf_add(out, s.p, n);
		if (n < s.n)
			put_byte(out, s.p[n]);
		s = text_from(s, n + 1);
	}
	buf_char(out, '"');
}

void
emit_init(struct emit *e, struct buf *out)
{
	*e = (struct emit){.out = out};
}

/* What stands before a value. */
static void
begin(struct emit *e, const char *key)
{
	if (e->comma[e->depth])
		buf_char(e->out, ',');
	e->comma[e->depth] = true;
	if (key != NULL) {
		struct span name = text_span(key);

		if (lex_plain(name) < name.n) {
			emit_quoted(e->out, name);
		} else { /* nearly always */
			buf_char(e->out, '"');
			buf_span(e->out, name);
			buf_char(e->out, '"');
		}
		buf_char(e->out, ':');
	}
}

static void
open_container(struct emit *e, const char *key, char opener, char closer)
{
	begin(e, key);
	if (++e->depth == NELEM(e->closer))
		die("JSON deeper than %zu", NELEM(e->closer) - 1);
	e->comma[e->depth] = false;
	e->closer[e->depth] = closer;
	buf_char(e->out, opener);
}

void
emit_object(struct emit *e, const char *key)
{
	open_container(e, key, '{', '}');
}

void
emit_array(struct emit *e, const char *key)
{
	open_container(e, key, '[', ']');
}

void
emit_end(struct emit *e)
{
	if (e->depth == 0)
		die("no JSON object or array is open");
	buf_char(e->out, e->closer[e->depth--]);
}

void
emit_text(struct emit *e, const char *key, struct span s)
{
	begin(e, key);
	emit_quoted(e->out, s);
}

void
emit_z(struct emit *e, const char *key, const char *z)
{
	if (z == NULL)
		emit_null(e, key);
	else
		emit_text(e, key, text_span(z));
}

void
emit_some(struct emit *e, const char *key, struct span s)
{
	if (s.n == 0)
		emit_null(e, key);
	else
		emit_text(e, key, s);
}

void
emit_known(struct emit *e, const char *key, int64_t v, bool known)
{
	if (known)
		emit_i64(e, key, v);
	else
		emit_null(e, key);
}

void
emit_i64(struct emit *e, const char *key, int64_t v)
{
	begin(e, key);
	buf_i64(e->out, v);
}

void
emit_real(struct emit *e, const char *key, double v, int decimals)
{
	if (!isfinite(v)) {
		emit_null(e, key);
		return;
	}
	begin(e, key);
	buf_print(e->out, "%.*f", decimals, v);
}

void
emit_bool(struct emit *e, const char *key, bool v)
{
	begin(e, key);
	buf_z(e->out, v ? "true" : "false");
}

void
emit_null(struct emit *e, const char *key)
{
	begin(e, key);
	buf_z(e->out, "null");
}

void
emit_time(struct emit *e, const char *key, struct wall_ms t)
{
	char text[DATE_TEXT];

	if (t.v == 0) {
		emit_null(e, key);
		return;
	}
	date_print(t, text);
	emit_z(e, key, text);
}

void
emit_raw(struct emit *e, const char *key, struct span json)
{
	if (json.n == 0) {
		emit_null(e, key);
		return;
	}
	begin(e, key);
	buf_span(e->out, json);
}
