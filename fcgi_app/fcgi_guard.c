#include "fcgi_guard.h"

#include <string.h>

#define VERSION 1
#define ROLE_RESPONDER 1

enum kind {
	KIND_BEGIN = 1,
	KIND_ABORT = 2,
	KIND_END = 3,
	KIND_PARAMS = 4,
	KIND_STDIN = 5,
	KIND_GET_VALUES = 9,
	KIND_GET_VALUES_RESULT = 10,
	KIND_UNKNOWN = 11,
};

enum end_status { END_COMPLETE = 0, END_NOT_MULTIPLEXED = 1, END_UNKNOWN_ROLE = 3 };

void
fcgi_guard_init(struct fcgi_guard *g)
{
	*g = (struct fcgi_guard){.phase = FCGI_GUARD_IN_BEGIN};
}

static void
answer(struct fcgi_guard *g, enum kind kind, unsigned id, const void *content, size_t n)
{
	const unsigned char head[FCGI_GUARD_HEAD_BYTES] = {VERSION, (unsigned char)kind,
	    (unsigned char)(id >> 8 & 0xff), (unsigned char)(id & 0xff), 0, (unsigned char)n};

	memcpy(g->answer, head, sizeof head);
	memcpy(g->answer + sizeof head, content, n);
	g->answer_n = sizeof head + n;
}

static void
answer_end(struct fcgi_guard *g, unsigned id, enum end_status status)
{
	const unsigned char end[8] = {[4] = (unsigned char)status};

	answer(g, KIND_END, id, end, sizeof end);
}

/* A record about the connection, not about a request. */
static void
answer_management(struct fcgi_guard *g, unsigned kind)
{
	static const char values[] = "\x0e\x01"
	                             "FCGI_MAX_CONNS1"
	                             "\x0d\x01"
	                             "FCGI_MAX_REQS1"
	                             "\x0f\x01"
	                             "FCGI_MPXS_CONNS0";
	const unsigned char unknown[8] = {(unsigned char)kind};

	if (kind == KIND_GET_VALUES)
		answer(g, KIND_GET_VALUES_RESULT, 0, values, sizeof values - 1);
	else
		answer(g, KIND_UNKNOWN, 0, unknown, sizeof unknown);
}

/* Not ours: passed over. */
static bool
is_of_others(struct fcgi_guard *g, unsigned kind, unsigned id)
{
	if (id != 0 && (g->id == 0 || id == g->id))
		return false;
	if (id == 0)
		answer_management(g, kind);
	else if (kind == KIND_BEGIN)
		answer_end(g, id, END_NOT_MULTIPLEXED);
	return true;
}

static enum fcgi_guard_rc
refuse_kind(unsigned kind, const char *where, struct why *why)
{
	err_why(why, "a record of kind %u %s", kind, where);
	return FCGI_GUARD_REFUSED;
}

/* Does this record of our request come in its turn? */
static enum fcgi_guard_rc
open_ours(struct fcgi_guard *g, unsigned kind, struct why *why)
{
	switch (g->phase) {
	case FCGI_GUARD_IN_BEGIN:
		if (kind != KIND_BEGIN || g->left != sizeof g->begin)
			return refuse_kind(kind, "where a request begins", why);
		return FCGI_GUARD_MORE;
	case FCGI_GUARD_IN_PARAMS:
		if (kind != KIND_PARAMS)
			return refuse_kind(kind, "among the variables", why);
		if (g->left > 0)
			return FCGI_GUARD_MORE;
		if (g->name_left > 0 || g->value_left > 0 || g->lengths_n > 0) {
			err_why(why, "a variable is longer than what came");
			return FCGI_GUARD_REFUSED;
		}
		g->phase = FCGI_GUARD_IN_BODY;
		g->then = FCGI_GUARD_HEAD;
		return FCGI_GUARD_MORE;
	case FCGI_GUARD_IN_BODY:
		if (kind != KIND_STDIN)
			return refuse_kind(kind, "in the body", why);
		if (g->left > 0)
			return FCGI_GUARD_MORE;
		g->phase = FCGI_GUARD_IN_NOTHING;
		g->then = FCGI_GUARD_END;
		return FCGI_GUARD_MORE;
	case FCGI_GUARD_IN_NOTHING: break;
	}
	return refuse_kind(kind, "behind the body", why);
}

/* A record's head is whole. */
static enum fcgi_guard_rc
open_record(struct fcgi_guard *g, struct buf *out, struct why *why)
{
	const unsigned kind = g->head[1], id = (unsigned)g->head[2] << 8 | g->head[3];
	enum fcgi_guard_rc rc;

	g->head_n = 0;
	g->left = (size_t)g->head[4] << 8 | g->head[5];
	g->pad = g->head[6];
	g->passes = !is_of_others(g, kind, id);
	if (!g->passes)
		return FCGI_GUARD_MORE;
	if (kind == KIND_ABORT && g->phase != FCGI_GUARD_IN_BEGIN) {
		if (g->phase == FCGI_GUARD_IN_PARAMS) /* libfcgi will not know of it */
			answer_end(g, id, END_COMPLETE);
		return FCGI_GUARD_ABORTED;
	}
	rc = open_ours(g, kind, why);
	if (rc != FCGI_GUARD_MORE)
		return rc;
	/* libfcgi forgets the padding of a record without content */
	g->head[6] = 0;
	buf_add(out, g->head, sizeof g->head);
	if (g->id == 0)
		g->id = id;
	return FCGI_GUARD_MORE;
}

static enum fcgi_guard_rc
look_at_begin(struct fcgi_guard *g, const unsigned char *p, size_t n, struct why *why)
{
	unsigned role;

	memcpy(g->begin + g->begin_n, p, n);
	g->begin_n += n;
	if (g->begin_n < sizeof g->begin)
		return FCGI_GUARD_MORE;
	g->phase = FCGI_GUARD_IN_PARAMS;
	role = (unsigned)g->begin[0] << 8 | g->begin[1];
	if (role == ROLE_RESPONDER)
		return FCGI_GUARD_MORE;
	err_why(why, "the role %u, only a responder is here", role);
	answer_end(g, g->id, END_UNKNOWN_ROLE);
	return FCGI_GUARD_REFUSED;
}

/* A length is one byte, or four of which the first has its high bit set. */
static size_t
length_of(const unsigned char *p)
{
	return p[0] < 0x80 ? p[0]
	                   : (size_t)(p[0] & 0x7f) << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 |
	                         (size_t)p[3];
}

/* Both lengths of a variable are there? */
static bool
lengths_are_whole(const struct fcgi_guard *g)
{
	size_t name = g->lengths[0] < 0x80 ? 1 : 4;

	return g->lengths_n > name && g->lengths_n == name + (g->lengths[name] < 0x80 ? 1 : 4);
}

static enum fcgi_guard_rc
begin_pair(struct fcgi_guard *g, struct why *why)
{
	size_t name = length_of(g->lengths);
	size_t value = length_of(g->lengths + (g->lengths[0] < 0x80 ? 1 : 4));

	g->lengths_n = 0;
	if (name + value > FCGI_GUARD_PARAMS_BYTES) { /* below 2^32 */
		err_why(why, "a variable of %zu bytes", name + value);
		return FCGI_GUARD_REFUSED;
	}
	if (g->params++ == FCGI_GUARD_PARAMS_MAX) {
		err_why(why, "more than %d variables", FCGI_GUARD_PARAMS_MAX);
		return FCGI_GUARD_REFUSED;
	}
	g->name_left = name;
	g->value_left = value;
	return FCGI_GUARD_MORE;
}

/* It would be taken for another variable. */
static enum fcgi_guard_rc
look_at_name(const unsigned char *p, size_t n, struct why *why)
{
	if (memchr(p, '=', n) == NULL && memchr(p, '\0', n) == NULL)
		return FCGI_GUARD_MORE;
	err_why(why, "a variable whose name holds '=' or NUL");
	return FCGI_GUARD_REFUSED;
}

static enum fcgi_guard_rc
look_at_params(struct fcgi_guard *g, const unsigned char *p, size_t n, struct why *why)
{
	enum fcgi_guard_rc rc = FCGI_GUARD_MORE;

	g->params_bytes += n;
	if (g->params_bytes > FCGI_GUARD_PARAMS_BYTES) {
		err_why(why, "variables of more than %d bytes", FCGI_GUARD_PARAMS_BYTES);
		return FCGI_GUARD_REFUSED;
	}
	while (n > 0 && rc == FCGI_GUARD_MORE) {
		size_t *left = g->name_left > 0 ? &g->name_left : &g->value_left;
		size_t some = *left < n ? *left : n;

		if (some == 0) {
			g->lengths[g->lengths_n++] = *p;
			some = 1;
			if (lengths_are_whole(g))
				rc = begin_pair(g, why);
		} else {
			if (left == &g->name_left)
				rc = look_at_name(p, some, why);
			*left -= some;
		}
		p += some;
		n -= some;
	}
	return rc;
}

static enum fcgi_guard_rc
look_at_content(struct fcgi_guard *g, const char *bytes, size_t n, struct why *why)
{
	const unsigned char *p = (const unsigned char *)bytes;

	switch (g->phase) {
	case FCGI_GUARD_IN_BEGIN: return look_at_begin(g, p, n, why);
	case FCGI_GUARD_IN_PARAMS: return look_at_params(g, p, n, why);
	case FCGI_GUARD_IN_BODY:
	case FCGI_GUARD_IN_NOTHING: break;
	}
	return FCGI_GUARD_MORE;
}

/* What of *in lies in one part of a record. */
static enum fcgi_guard_rc
pass_part(struct fcgi_guard *g, struct span *in, struct buf *out, struct why *why)
{
	size_t want = g->left > 0 ? g->left : g->pad > 0 ? g->pad : sizeof g->head - g->head_n;
	struct span part = {in->p, want < in->n ? want : in->n};

	*in = text_from(*in, part.n);
	if (g->left > 0) {
		g->left -= part.n;
		if (!g->passes)
			return FCGI_GUARD_MORE;
		buf_add(out, part.p, part.n);
		return look_at_content(g, part.p, part.n, why);
	}
	if (g->pad > 0) {
		g->pad -= part.n;
		return FCGI_GUARD_MORE;
	}
	memcpy(g->head + g->head_n, part.p, part.n);
	g->head_n += part.n;
	if (g->head[0] != VERSION) {
		err_why(why, "no FastCGI");
		return FCGI_GUARD_REFUSED;
	}
	return g->head_n == sizeof g->head ? open_record(g, out, why) : FCGI_GUARD_MORE;
}

enum fcgi_guard_rc
fcgi_guard_pass(struct fcgi_guard *g, struct span *in, struct buf *out, struct why *why)
{
	enum fcgi_guard_rc rc = FCGI_GUARD_MORE;

	g->answer_n = 0;
	while (in->n > 0 && rc == FCGI_GUARD_MORE && g->answer_n == 0) {
		rc = pass_part(g, in, out, why);
		if (rc == FCGI_GUARD_MORE && g->left == 0 && g->pad == 0 && g->head_n == 0) {
			rc = g->then;
			g->then = FCGI_GUARD_MORE;
		}
	}
	return rc;
}
