#include "base/scan.h"

#include "base/lex.h"

#include <stdlib.h>
#include <string.h>

#define SPARE (SCAN_PARTS_MAX + 1) /* the frame of all depths that no path reaches */
#define BUCKETS 16                 /* for the lengths of names */
#define NO_INDEX SIZE_MAX

/* Sets of paths are masks: bit i stands for paths[i]. */
struct scan_plan {
	size_t n;
	bool lax;
	uint32_t ends[SPARE];                      /* by the number of components */
	uint32_t indexed[SCAN_PARTS_MAX];          /* by place: the component is a number */
	uint32_t lengths[SCAN_PARTS_MAX][BUCKETS]; /* by place and length of the component */
	struct part {
		struct span name;
		size_t index;
	} parts[SCAN_PATHS_MAX][SCAN_PARTS_MAX];
};

/* An open container. */
struct frame {
	const char *start;
	size_t index;   /* of the next element */
	uint32_t whole; /* paths that ask for the container itself */
	uint32_t live;  /* paths that go on inside it */
	uint32_t seen;  /* those of them whose member was there already */
};

struct reader {
	const struct scan_plan *plan;
	struct scan_value *values;
	const char *end;
	size_t depth;
	uint32_t hit; /* paths that lead to or through the value that begins here */
	bool opened;  /* the last thing read was an opening bracket */
	struct lex_fault fault;
	struct span twice; /* the name that the fault is about */
	struct frame frames[SPARE + 1];
	char closers[SCAN_DEPTH_MAX];
};

static size_t
part_index(struct span name)
{
	int64_t v;

	if (name.n == 0 || name.p[0] == '-' || (name.p[0] == '0' && name.n > 1))
		return NO_INDEX;
	return text_i64(name, 0, INT32_MAX, &v) ? (size_t)v : NO_INDEX;
}

static void
add_path(struct scan_plan *plan, size_t i, const char *path)
{
	uint32_t bit = 1U << i;
	size_t place = 0;

	for (const char *p = path;; p++) {
		struct span name = {p, strcspn(p, ".")};

		if (place == SCAN_PARTS_MAX)
			die("path '%s' has more than %d components", path, SCAN_PARTS_MAX);
		plan->parts[i][place] = (struct part){name, part_index(name)};
		plan->lengths[place][name.n % BUCKETS] |= bit;
		if (plan->parts[i][place].index != NO_INDEX)
			plan->indexed[place] |= bit;
		place++;
		p += name.n;
		if (*p == '\0')
			break;
	}
	plan->ends[place] |= bit;
}

static void
build_plan(struct scan_plan *plan, const char *const *paths, size_t n)
{
	if (n > SCAN_PATHS_MAX)
		die("%zu paths, at most %d", n, SCAN_PATHS_MAX);
	plan->n = n;
	plan->lax = false;
	memset(plan->ends, 0, sizeof plan->ends);
	memset(plan->indexed, 0, sizeof plan->indexed);
	memset(plan->lengths, 0, sizeof plan->lengths);
	for (size_t i = 0; i < n; i++)
		add_path(plan, i, paths[i]);
}

struct scan_plan *
scan_plan_new(const char *const *paths, size_t n)
{
	struct scan_plan *plan = malloc(sizeof *plan);

	if (plan == NULL)
		die("no memory for %zu bytes", sizeof *plan);
	build_plan(plan, paths, n);
	return plan;
}

void
scan_plan_free(struct scan_plan **plan)
{
	free(*plan);
	*plan = NULL;
}

void
scan_plan_lax(struct scan_plan *plan)
{
	plan->lax = true;
}

static const char *
refuse(struct reader *r, const char *at, const char *what)
{
	r->fault = (struct lex_fault){what, at};
	return NULL;
}

static const char *
skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	return p;
}

static void
record(const struct reader *r, uint32_t who, enum scan_type type, struct span raw)
{
	for (; who != 0; who &= who - 1)
		r->values[__builtin_ctz(who)] = (struct scan_value){type, raw};
}

static struct frame *
top_frame(struct reader *r)
{
	return &r->frames[r->depth - 1 < SPARE ? r->depth - 1 : SPARE];
}

static const char *
open_container(struct reader *r, const char *p, char closer)
{
	uint32_t whole = r->hit == 0 ? 0 : r->hit & r->plan->ends[r->depth];

	if (r->depth == SCAN_DEPTH_MAX)
		return refuse(r, p, "nested too deeply");
	r->closers[r->depth++] = closer;
	r->opened = true;
	*top_frame(r) = (struct frame){.start = p, .whole = whole, .live = r->hit & ~whole};
	return p + 1;
}

static const char *
close_container(struct reader *r, const char *p)
{
	const struct frame *frame = top_frame(r);

	record(r, frame->whole, *p == '}' ? SCAN_OBJECT : SCAN_ARRAY,
	    (struct span){frame->start, (size_t)(p + 1 - frame->start)});
	r->depth--;
	r->opened = false;
	return p + 1;
}

static const char *
bad_value(struct reader *r, const char *p)
{
	if (p == r->end)
		return refuse(
		    r, p, r->depth == 0 ? "the text is empty" : "the text ends too early");
	if (text_starts((struct span){p, (size_t)(r->end - p)}, "\xef\xbb\xbf"))
		return refuse(r, p, "a byte order mark is not allowed");
	switch (*p) {
	case '\'': return refuse(r, p, "strings need double quotes");
	case '/': return refuse(r, p, "comments are not allowed");
	case ']':
	case '}': return refuse(r, p, "a value was expected before the closing bracket");
	default: return refuse(r, p, "a value was expected");
	}
}

static const char *
read_word(struct reader *r, const char *p, struct span word)
{
	if ((size_t)(r->end - p) < word.n || memcmp(p, word.p, word.n) != 0)
		return bad_value(r, p);
	return p + word.n;
}

static const char *
read_string(struct reader *r, const char *p, struct lex_seen *seen_out)
{
	struct lex_seen seen;

	p = lex_string(p + 1, r->end, seen_out, &r->fault);
	while (p == NULL && r->plan->lax && r->fault.at < r->end && (*r->fault.at & 0x80) != 0) {
		/* what is no UTF-8 ends with the next byte of ASCII */
		for (p = r->fault.at; p < r->end && (*p & 0x80) != 0; p++)
			continue;
		p = lex_string(p, r->end, &seen, &r->fault);
		seen_out->escape |= seen.escape;
		seen_out->nul |= seen.nul;
	}
	return p;
}

/* The last of a name counts: what an earlier one had told is forgotten. */
static void
forget(const struct reader *r, uint32_t who)
{
	for (; who != 0; who &= who - 1)
		r->values[__builtin_ctz(who)].type = SCAN_ABSENT;
}

/* Behind the value that begins at p; of a container only the bracket is read. */
static const char *
read_value(struct reader *r, const char *p)
{
	const char *begin = p;
	struct lex_seen seen;
	enum scan_type type;

	r->opened = false;
	switch (p == r->end ? '\0' : *p) {
	case '{': return open_container(r, p, '}');
	case '[': return open_container(r, p, ']');
	case '"':
		type = SCAN_STRING;
		p = read_string(r, p, &seen);
		break;
	case 't':
		type = SCAN_TRUE;
		p = read_word(r, p, SPAN("true"));
		break;
	case 'f':
		type = SCAN_FALSE;
		p = read_word(r, p, SPAN("false"));
		break;
	case 'n':
		type = SCAN_NULL;
		p = read_word(r, p, SPAN("null"));
		break;
	case '-':
	case '0' ... '9':
		type = SCAN_NUMBER;
		p = lex_number(p, r->end, &r->fault);
		break;
	default: return bad_value(r, p);
	}
	if (p != NULL && r->hit != 0)
		record(r, r->hit & r->plan->ends[r->depth], type,
		    (struct span){begin, (size_t)(p - begin)});
	return p;
}

/* The live paths whose component at this place is the name with these raw inner bytes. */
static uint32_t
match_name(const struct reader *r, uint32_t live, struct span inner, bool escaped)
{
	size_t place = r->depth - 1;
	uint32_t hit = 0;

	if (!escaped)
		live &= r->plan->lengths[place][inner.n % BUCKETS];
	for (; live != 0; live &= live - 1) {
		int i = __builtin_ctz(live);
		struct span want = r->plan->parts[i][place].name;

		if (escaped ? lex_same(inner, want) : text_equal(inner, want))
			hit |= 1U << i;
	}
	return hit;
}

/* From the beginning of a member to that of its value. */
static const char *
read_name(struct reader *r, const char *p)
{
	struct frame *frame = top_frame(r);
	const char *name = p;
	struct lex_seen seen;

	r->hit = 0;
	if (p == r->end || *p != '"')
		return refuse(r, p, "a name in double quotes was expected");
	p = read_string(r, p, &seen);
	if (p == NULL)
		return NULL;
	if (seen.nul && !r->plan->lax)
		return refuse(r, name, "a name must not hold \\u0000");
	if (frame->live != 0) {
		struct span inner = {name + 1, (size_t)(p - name - 2)};

		r->hit = match_name(r, frame->live, inner, seen.escape);
		if ((r->hit & frame->seen) != 0 && r->plan->lax)
			forget(r, r->hit);
		else if ((r->hit & frame->seen) != 0) {
			r->twice = r->plan->parts[__builtin_ctz(r->hit)][r->depth - 1].name;
			return refuse(r, name, "a second member of the same name");
		}
		frame->seen |= r->hit;
	}
	p = skip_blanks(p, r->end);
	if (p == r->end || *p != ':')
		return refuse(r, p, "':' was expected");
	return skip_blanks(p + 1, r->end);
}

static void
begin_element(struct reader *r)
{
	struct frame *frame = top_frame(r);
	size_t place = r->depth - 1, index = frame->index++;

	r->hit = 0;
	if (frame->live == 0)
		return;
	for (uint32_t live = frame->live & r->plan->indexed[place]; live != 0; live &= live - 1) {
		int i = __builtin_ctz(live);

		if (r->plan->parts[i][place].index == index)
			r->hit |= 1U << i;
	}
}

/* From the end of a value, or behind an opening bracket, to the next value or behind the end of the outermost. */
static const char *
read_between(struct reader *r, const char *p)
{
	while (r->depth > 0) {
		char closer = r->closers[r->depth - 1];

		p = skip_blanks(p, r->end);
		if (p == r->end)
			return refuse(r, p, "the text ends too early");
		if (*p == closer) {
			p = close_container(r, p);
			continue;
		}
		if (!r->opened) {
			if (*p != ',')
				return refuse(r, p,
				    closer == '}' ? "',' or '}' was expected"
				                  : "',' or ']' was expected");
			p = skip_blanks(p + 1, r->end);
		}
		if (closer == '}')
			return read_name(r, p);
		begin_element(r);
		return p;
	}
	return p;
}

static void
explain(const struct reader *r, struct span text, struct why *why)
{
	size_t at = (size_t)(r->fault.at - text.p), column = 1;

	for (size_t i = at; i > 0 && text.p[i - 1] != '\n'; i--)
		column += ((unsigned char)text.p[i - 1] & 0xc0) != 0x80; /* characters, not bytes */
	err_why(why, "line %zu, column %zu: %s", scan_line(text, at), column, r->fault.what);
	if (r->twice.n > 0)
		err_why(why, "line %zu, column %zu: %s: '%.*s'", scan_line(text, at), column,
		    r->fault.what, (int)r->twice.n, r->twice.p);
}

enum err
scan_run(
    const struct scan_plan *plan, struct span text, struct scan_value *values_out, struct why *why)
{
	struct reader r = {.plan = plan, .values = values_out};
	const char *p;

	if (text.n == 0)
		text.p = ""; /* no arithmetic on NULL */
	r.end = text.p + text.n;
	p = skip_blanks(text.p, r.end);
	for (size_t i = 0; i < plan->n; i++)
		values_out[i] = (struct scan_value){.type = SCAN_ABSENT};
	r.hit = plan->n == 0 ? 0 : UINT32_MAX >> (SCAN_PATHS_MAX - plan->n);
	do {
		p = read_value(&r, p);
		if (p != NULL)
			p = read_between(&r, p);
	} while (p != NULL && r.depth > 0);
	if (p != NULL) {
		p = skip_blanks(p, r.end);
		if (p == r.end)
			return ERR_OK;
		refuse(&r, p, "more text after the end of the document");
	}
	explain(&r, text, why);
	return ERR_BAD_INPUT;
}

enum err
scan_pick(struct span text, const char *const *paths, struct scan_value *values_out, size_t n,
    struct why *why)
{
	struct scan_plan plan;

	build_plan(&plan, paths, n);
	return scan_run(&plan, text, values_out, why);
}
