#include "lib/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {[FLOW_START] = "start",
    [FLOW_TEXT] = "text",
    [FLOW_REFUSAL] = "refusal",
    [FLOW_THOUGHT] = "thought",
    [FLOW_SEAL] = "seal",
    [FLOW_REDACTED] = "redacted",
    [FLOW_CALL] = "call",
    [FLOW_ARGUMENTS] = "args",
    [FLOW_CALL_END] = "callend",
    [FLOW_CITATION] = "cite",
    [FLOW_BREAK] = "break",
    [FLOW_FINISH] = "finish",
    [FLOW_USAGE] = "usage",
    [FLOW_END] = "end"};

static const char *const reasons[] = {[FLOW_STOP] = "stop",
    [FLOW_LENGTH] = "length",
    [FLOW_CALLS] = "calls",
    [FLOW_FILTERED] = "filtered",
    [FLOW_PAUSED] = "paused",
    [FLOW_STOP_TEXT] = "stop_text"};

static void
put(struct buf *b, struct span text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\n')
			buf_z(b, "\\n");
		else
			buf_char(b, text.p[i]);
	}
}

static void
put_usage(struct buf *b, const struct dialect_usage *u)
{
	if (u != NULL)
		buf_print(b, " %lld %lld %lld %lld %lld", (long long)u->prompt,
		    (long long)u->completion, (long long)u->cached, (long long)u->cache_write,
		    (long long)u->reasoning);
}

void
steps_note(void *out, const struct flow *step)
{
	struct buf *b = out;

	buf_z(b, step->kind == FLOW_CALL && step->custom ? "custom" : names[step->kind]);
	switch (step->kind) {
	case FLOW_START:
		buf_char(b, ' ');
		put(b, step->id);
		buf_char(b, ' ');
		put(b, step->model);
		break;
	case FLOW_CALL:
		buf_print(b, " %zu ", step->call);
		put(b, step->id);
		buf_char(b, ' ');
		put(b, step->name);
		break;
	case FLOW_ARGUMENTS:
		buf_print(b, " %zu ", step->call);
		put(b, step->text);
		break;
	case FLOW_CALL_END: buf_print(b, " %zu", step->call); break;
	case FLOW_FINISH:
		buf_print(b, " %s ", reasons[step->finish]);
		put(b, step->stop);
		break;
	case FLOW_USAGE: put_usage(b, step->usage); break;
	case FLOW_TEXT:
	case FLOW_REFUSAL:
	case FLOW_THOUGHT:
	case FLOW_SEAL:
	case FLOW_REDACTED:
	case FLOW_CITATION:
		buf_char(b, ' ');
		put(b, step->text);
		break;
	case FLOW_BREAK:
	case FLOW_END: break;
	}
	buf_char(b, '\n');
}

static struct span
word(struct span *rest)
{
	size_t n = text_find(*rest, SPAN(" "));
	struct span w = {rest->p, n};

	*rest = text_from(*rest, n < rest->n ? n + 1 : n);
	return w;
}

static size_t
number(struct span *rest)
{
	struct span w = word(rest);
	int64_t n = 0;

	if (!text_i64(w, 0, 1 << 20, &n))
		die("no number: '%.*s'", (int)w.n, w.p);
	return (size_t)n;
}

static void
fill(struct flow *s, struct dialect_usage *usage, struct span rest)
{
	switch (s->kind) {
	case FLOW_START:
		s->id = word(&rest);
		s->model = rest;
		break;
	case FLOW_CALL:
		s->call = number(&rest);
		s->id = word(&rest);
		s->name = rest;
		break;
	case FLOW_ARGUMENTS:
		s->call = number(&rest);
		s->text = rest;
		break;
	case FLOW_CALL_END: s->call = number(&rest); break;
	case FLOW_FINISH: {
		struct span reason = word(&rest);

		for (size_t i = 0; i < NELEM(reasons); i++)
			if (text_is(reason, reasons[i]))
				s->finish = (enum flow_finish)i;
		s->stop = rest;
		break;
	}
	case FLOW_USAGE: {
		int64_t *const figures[] = {&usage->prompt, &usage->completion, &usage->cached,
		    &usage->cache_write, &usage->reasoning};

		for (size_t i = 0; i < NELEM(figures); i++) {
			*figures[i] = -1;
			(void)text_i64(word(&rest), -1, INT64_MAX, figures[i]);
		}
		usage->seen = true;
		s->usage = usage;
		break;
	}
	case FLOW_TEXT:
	case FLOW_REFUSAL:
	case FLOW_THOUGHT:
	case FLOW_SEAL:
	case FLOW_REDACTED:
	case FLOW_CITATION: s->text = rest; break;
	case FLOW_BREAK:
	case FLOW_END: break;
	}
}

void
steps_give(const char *text, flow_sink_fn *sink, void *arg)
{
	struct span rest = text_span(text), line;

	while (text_token(&rest, "\n", &line)) {
		struct span kind = word(&line);
		struct dialect_usage usage = {.seen = false};
		struct flow s = {.custom = text_is(kind, "custom")};
		size_t i = 0;

		while (i < NELEM(names) && !text_is(kind, names[i]) && !s.custom)
			i++;
		if (i == NELEM(names))
			die("no step: '%.*s'", (int)kind.n, kind.p);
		s.kind = s.custom ? FLOW_CALL : (enum flow_kind)i;
		fill(&s, &usage, line);
		sink(arg, &s);
	}
}
