#include "dialect/gather.h"

#include <string.h>

#define TEXT_MAX ((size_t)1 << 31)
#define PARTS_MAX 4096

/* A part that grows. Parts move when others are added, so they are known by their place. */
struct open {
	size_t part;
	struct buf *text;
};

struct gather {
	struct arena *arena;
	struct flow_answer answer;
	struct open last; /* text, refusal or thought that the next piece may continue */
	struct open of[FORM_THOUGHT + 1]; /* the last text, the last refusal, the last thought */
	struct open *calls;               /* by number */
	size_t ncalls, cap;
	struct buf *citations;
};

struct gather *
gather_begin(struct arena *arena)
{
	struct gather *g = arena_alloc(arena, sizeof *g);
	struct dialect_tap tap;

	g->arena = arena;
	g->answer.turn.role = FORM_ASSISTANT;
	dialect_tap_init(&tap);
	g->answer.usage = tap.usage;
	return g;
}

static struct span
keep(struct gather *g, struct span text)
{
	return arena_copy(g->arena, text);
}

static struct form_part *
part_of(struct gather *g, const struct open *open)
{
	return &g->answer.turn.parts[open->part];
}

/* Nobody answers in so many parts. What comes then goes to the last of its kind; of what is none by itself nothing is kept. */
static bool
is_full(const struct gather *g)
{
	return g->answer.turn.nparts >= PARTS_MAX;
}

static void
append(struct gather *g, enum form_kind kind, struct span text)
{
	if (text.n == 0)
		return;
	if (is_full(g) && g->of[kind].text != NULL) {
		g->last = g->of[kind];
	} else if (g->last.text == NULL || part_of(g, &g->last)->kind != kind) {
		form_add_part(g->arena, &g->answer.turn, kind);
		g->last = (struct open){g->answer.turn.nparts - 1, arena_buf(g->arena, TEXT_MAX)};
		g->of[kind] = g->last;
	}
	buf_span(g->last.text, text);
	part_of(g, &g->last)->text = buf_text(g->last.text);
}

static bool
is_unsealed(const struct form_part *part)
{
	return part->kind == FORM_THOUGHT && part->thought.seal.n == 0;
}

static void
seal_thought(struct gather *g, struct span seal)
{
	struct form_turn *turn = &g->answer.turn;

	if (is_full(g)) {
		g->answer.cut = true;
		return;
	}
	if (turn->nparts == 0 || !is_unsealed(&turn->parts[turn->nparts - 1]))
		form_add_part(g->arena, turn, FORM_THOUGHT);
	turn->parts[turn->nparts - 1].thought.seal = keep(g, seal);
	g->last.text = NULL;
}

static void
redacted(struct gather *g, struct span seal)
{
	struct form_part *part;

	if (is_full(g)) {
		g->answer.cut = true;
		return;
	}
	part = form_add_part(g->arena, &g->answer.turn, FORM_THOUGHT);
	part->thought = (struct form_thought){.seal = keep(g, seal), .redacted = true};
	g->last.text = NULL;
}

static void
begin_call(struct gather *g, const struct flow *step)
{
	struct form_part *part;

	if (is_full(g)) {
		g->answer.cut = true;
		return;
	}
	part = form_add_part(g->arena, &g->answer.turn, FORM_CALL);
	part->call = (struct form_call){.id = keep(g, step->id),
	    .name = keep(g, step->name),
	    .namespace = keep(g, step->namespace),
	    .item_id = keep(g, step->item_id),
	    .custom = step->custom,
	    .made = step->made};
	g->last.text = NULL;
	if (g->ncalls == g->cap) {
		size_t cap = g->cap == 0 ? 4 : g->cap * 2;
		struct open *calls = arena_alloc(g->arena, cap * sizeof *calls);

		if (g->ncalls > 0)
			memcpy(calls, g->calls, g->ncalls * sizeof *calls);
		g->calls = calls;
		g->cap = cap;
	}
	g->calls[g->ncalls++] =
	    (struct open){g->answer.turn.nparts - 1, arena_buf(g->arena, TEXT_MAX)};
}

static void
add_arguments(struct gather *g, const struct flow *step)
{
	struct open *call;

	if (step->call >= g->ncalls)
		return;
	call = &g->calls[step->call];
	buf_span(call->text, step->text);
	part_of(g, call)->call.arguments = buf_text(call->text);
}

static void
cite(struct gather *g, struct span raw)
{
	if (g->citations == NULL)
		g->citations = arena_buf(g->arena, TEXT_MAX);
	else
		g->citations->n--; /* the bracket */
	buf_char(g->citations, g->citations->n == 0 ? '[' : ',');
	buf_span(g->citations, raw);
	buf_char(g->citations, ']');
	g->answer.citations = buf_text(g->citations);
}

/* A call without a piece of arguments has the empty object. */
static void
finish(struct gather *g, const struct flow *step)
{
	for (size_t i = 0; i < g->ncalls; i++) {
		struct form_call *call = &part_of(g, &g->calls[i])->call;

		if (call->arguments.n == 0 && !call->custom)
			call->arguments = SPAN("{}");
	}
	g->answer.finish = step->finish;
	g->answer.stop = keep(g, step->stop);
}

void
gather_step(void *gather, const struct flow *step)
{
	struct gather *g = gather;

	switch (step->kind) {
	case FLOW_START:
		g->answer.id = keep(g, step->id);
		g->answer.model = keep(g, step->model);
		break;
	case FLOW_TEXT: append(g, FORM_TEXT, step->text); break;
	case FLOW_REFUSAL: append(g, FORM_REFUSAL, step->text); break;
	case FLOW_THOUGHT: append(g, FORM_THOUGHT, step->text); break;
	case FLOW_SEAL: seal_thought(g, step->text); break;
	case FLOW_REDACTED: redacted(g, step->text); break;
	case FLOW_CALL: begin_call(g, step); break;
	case FLOW_ARGUMENTS: add_arguments(g, step); break;
	case FLOW_CALL_END: break;
	case FLOW_CITATION: cite(g, step->text); break;
	case FLOW_BREAK: g->last.text = NULL; break;
	case FLOW_FINISH: finish(g, step); break;
	case FLOW_USAGE: g->answer.usage = *step->usage; break;
	case FLOW_END: g->answer.ended = true; break;
	}
}

const struct flow_answer *
gather_answer(struct gather *gather)
{
	return &gather->answer;
}
