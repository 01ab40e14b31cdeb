#include "dialect/multipart.h"

#include <string.h>

#define TYPE "multipart/form-data"
#define BOUNDARY_MAX 70
#define HEADERS_MAX 16384

bool
multipart_is(struct span content_type)
{
	struct span rest = text_from(text_trim(content_type), sizeof TYPE - 1);

	return text_starts_fold(text_trim(content_type), TYPE) &&
	       (rest.n == 0 || rest.p[0] == ';' || rest.p[0] == ' ' || rest.p[0] == '\t');
}

static enum err
bad(struct why *why, const char *text)
{
	err_why(why, "the multipart body %s", text);
	return ERR_BAD_INPUT;
}

/* Cut one ";name=value" off the parameters of a header. A quoted value may hold anything but its end. */
static bool
next_parameter(struct span *rest, struct span *name_out, struct span *value_out)
{
	size_t at = text_find(*rest, SPAN(";")), eq, end;
	struct span s = text_trim(text_from(*rest, at + 1));

	if (at == rest->n || s.n == 0)
		return false;
	eq = text_find(s, SPAN("="));
	if (eq == s.n)
		return false;
	*name_out = text_trim((struct span){s.p, eq});
	s = text_trim(text_from(s, eq + 1));
	if (!text_starts(s, "\"")) {
		end = text_find(s, SPAN(";"));
		*value_out = text_trim((struct span){s.p, end});
		*rest = text_from(s, end);
		return true;
	}
	for (end = 1; end < s.n && s.p[end] != '"'; end++)
		end += s.p[end] == '\\' && end + 1 < s.n;
	if (end >= s.n)
		return false;
	*value_out = (struct span){s.p + 1, end - 1};
	*rest = text_from(s, end + 1);
	return true;
}

enum err
multipart_boundary(
    struct arena *arena, struct span content_type, struct span *boundary_out, struct why *why)
{
	struct span rest = content_type, name, value, found = {NULL, 0};

	while (next_parameter(&rest, &name, &value))
		if (text_is_fold(name, "boundary"))
			found = found.p == NULL ? value : (struct span){"", 0};
	if (found.n == 0 || found.n > BOUNDARY_MAX || memchr(found.p, '\\', found.n) != NULL) {
		err_why(
		    why, "Content-Type must name a boundary of 1 to %d characters", BOUNDARY_MAX);
		return ERR_BAD_INPUT;
	}
	*boundary_out =
	    text_span(arena_join(arena, (const struct span[]){SPAN("\r\n--"), found}, 2));
	return ERR_OK;
}

/* A walk from one boundary to the next. */
struct parts {
	struct span body, delimiter; /* CRLF and dashes before it */
	size_t at;                   /* behind a delimiter */
};

/* Where the delimiter stands next, or the body's end. */
static size_t
find(const struct parts *p, size_t from)
{
	const char *hit =
	    memmem(p->body.p + from, p->body.n - from, p->delimiter.p, p->delimiter.n);

	return hit == NULL ? p->body.n : (size_t)(hit - p->body.p);
}

/* The first delimiter needs no line before it; a host that takes other line ends must not find it earlier. */
static enum err
enter(struct parts *p, struct why *why)
{
	struct span bare = text_from(p->delimiter, 2);
	size_t at = text_find(p->body, bare);

	if (at == p->body.n)
		return bad(why, "does not hold the boundary that Content-Type names");
	if (at > 0 && find(p, 0) + 2 != at)
		return bad(why, "has its first boundary inside a line");
	p->at = at + bare.n;
	return ERR_OK;
}

/* Behind the closing delimiter: nothing that a host could take for more parts. */
static enum err
leave(const struct parts *p, struct why *why)
{
	struct span rest = text_from(p->body, p->at + 2);

	if (text_find(rest, text_from(p->delimiter, 2)) < rest.n)
		return bad(why, "goes on behind its last boundary");
	return ERR_OK;
}

/* Behind a delimiter: does a part follow? The rest of the line may only be blank. */
static enum err
begin_part(struct parts *p, bool *follows_out, struct why *why)
{
	struct span rest = text_from(p->body, p->at);

	*follows_out = !text_starts(rest, "--");
	if (!*follows_out)
		return leave(p, why);
	while (rest.n > 0 && (rest.p[0] == ' ' || rest.p[0] == '\t'))
		rest = text_from(rest, 1);
	if (!text_starts(rest, "\r\n"))
		return bad(why, "has a line that only begins like its boundary, or is cut");
	p->at = p->body.n - rest.n + 2;
	return ERR_OK;
}

struct part {
	struct span name, value;
	bool disposed, file;
};

static bool
read_parameter(struct span name, struct span value, struct part *part)
{
	if (text_is_fold(name, "name")) {
		if (part->name.p != NULL || memchr(value.p, '\\', value.n) != NULL)
			return false;
		part->name = value;
	}
	if (text_is_fold(name, "filename") || text_is_fold(name, "filename*"))
		part->file = true;
	return !text_is_fold(name, "name*") && text_find(name, SPAN(";")) == name.n;
}

/* False: another reader could find another name in it. */
static bool
read_disposition(struct span line, struct part *part)
{
	struct span rest = text_from(line, text_find(line, SPAN(";"))), name, value;

	if (part->disposed)
		return false;
	part->disposed = true;
	while (text_starts(text_trim(rest), ";") && next_parameter(&rest, &name, &value))
		if (!read_parameter(name, value, part))
			return false;
	rest = text_trim(rest);
	return rest.n == 0 || text_is(rest, ";");
}

/* Over two lines, or with line ends of its own, it is another header to another reader. */
static bool
is_one_line(struct span line)
{
	struct span name = {line.p, text_find(line, SPAN(":"))};

	for (size_t i = 0; i < line.n; i++)
		if (line.p[i] == '\r' || line.p[i] == '\n' || line.p[i] == '\0')
			return false;
	return text_find(name, SPAN(" ")) == name.n && text_find(name, SPAN("\t")) == name.n;
}

/* The headers up to their empty line. */
static enum err
read_headers(struct parts *p, struct part *part, struct why *why)
{
	size_t left = p->body.n - p->at;
	bool more = left > HEADERS_MAX; /* than may be looked at */
	struct span rest = {p->body.p + p->at, more ? HEADERS_MAX : left}, line;

	do {
		size_t end = text_find(rest, SPAN("\r\n"));

		if (end == rest.n)
			return bad(why, more ? "has a part with too many headers"
			                     : "is cut in the headers of a part");
		line = (struct span){rest.p, end};
		rest = text_from(rest, end + 2);
		if (!is_one_line(line))
			return bad(why, "has a part with a broken header");
		if (text_starts_fold(line, "content-disposition:") && !read_disposition(line, part))
			return bad(why, "has a part whose name is not clear");
	} while (line.n > 0);
	p->at = (size_t)(rest.p - p->body.p);
	return ERR_OK;
}

static enum err
keep(const struct part *part, struct multipart *fields, struct why *why)
{
	struct {
		const char *name;
		struct span *field;
	} wanted[] = {{"model", &fields->model}, {"stream", &fields->stream}};

	for (size_t i = 0; i < NELEM(wanted); i++) {
		if (part->name.p == NULL || !text_is(part->name, wanted[i].name))
			continue;
		if (part->file) {
			err_why(why, "'%s' is a file in the multipart body", wanted[i].name);
			return ERR_BAD_INPUT;
		}
		if (wanted[i].field->p != NULL) {
			err_why(why, "'%s' stands twice in the multipart body", wanted[i].name);
			return ERR_BAD_INPUT;
		}
		*wanted[i].field = part->value;
	}
	return ERR_OK;
}

/* One part, up to its closing delimiter. */
static enum err
read_part(struct parts *p, struct multipart *fields, struct why *why)
{
	struct part part = {.name = {NULL, 0}};
	enum err err = read_headers(p, &part, why);
	size_t end;

	if (err != ERR_OK)
		return err;
	/* an empty value: the delimiter's line end is that of the headers */
	end = find(p, p->at - 2);
	if (end == p->body.n)
		return bad(why, "is cut: the last boundary is missing");
	part.value = (struct span){p->body.p + p->at, end < p->at ? 0 : end - p->at};
	p->at = end + p->delimiter.n;
	return keep(&part, fields, why);
}

enum err
multipart_read(
    struct span body, struct span boundary, struct multipart *fields_out, struct why *why)
{
	struct parts p = {.body = body, .delimiter = boundary};
	bool follows;
	enum err err = enter(&p, why);

	*fields_out = (struct multipart){.model = {NULL, 0}};
	while (err == ERR_OK) {
		err = begin_part(&p, &follows, why);
		if (err != ERR_OK || !follows)
			return err;
		err = read_part(&p, fields_out, why);
	}
	return err;
}
