#include "context_join.h"

#include "dialect/form_pack.h"

#include <string.h>

#define PACKED_MAX ((size_t)1 << 31)

struct join {
	struct serve_job *j;
	struct arena *arena;
	const struct form *sent;
	size_t nlead;            /* turns of what was sent that lead */
	struct form_turn lead;   /* as one, to be stored; without parts: there is none */
	struct form_turn kept;   /* what is stored of such; likewise */
	struct form_turn *turns; /* the other stored ones */
	size_t nturns;
	bool has_place; /* the first that is stored is such a text */
};

/* Several are stored as one. */
static void
take_lead(struct join *n)
{
	const struct form *sent = n->sent;
	size_t parts = 0;

	n->nlead = form_leading(sent);
	for (size_t i = 0; i < n->nlead; i++)
		parts += sent->turns[i].nparts;
	n->lead = (struct form_turn){.role = FORM_SYSTEM, .at = SIZE_MAX};
	if (n->nlead == 0)
		return;
	n->lead.role = sent->turns[0].role;
	n->lead.name = sent->turns[0].name;
	n->lead.parts = arena_alloc(n->arena, (parts + 1) * sizeof *n->lead.parts);
	for (size_t i = 0; i < n->nlead; i++) {
		const struct form_turn *turn = &sent->turns[i];

		if (turn->nparts > 0)
			memcpy(&n->lead.parts[n->lead.nparts], turn->parts,
			    turn->nparts * sizeof *turn->parts);
		n->lead.nparts += turn->nparts;
	}
}

/* Stored turns are of no list, and their marks would add up. */
static void
place(struct arena *arena, struct form_turn *turn, bool leads)
{
	turn->at = FORM_AT_KEPT;
	for (size_t i = 0; i < turn->nparts; i++) {
		struct form_part *part = &turn->parts[i];
		struct form_part *inner;

		part->at = FORM_AT_KEPT;
		part->in = SIZE_MAX;
		if (!leads)
			part->cache_control.n = 0;
		if (part->result.nparts == 0)
			continue;
		inner = arena_alloc(arena, part->result.nparts * sizeof *inner);
		memcpy(inner, part->result.parts, part->result.nparts * sizeof *inner);
		for (size_t k = 0; k < part->result.nparts; k++) {
			inner[k].at = FORM_AT_KEPT;
			inner[k].in = inner[k].of = SIZE_MAX;
			inner[k].cache_control.n = 0;
		}
		part->result.parts = inner;
	}
}

static void
take_stored(struct join *n)
{
	const struct context_turns *had = &n->j->context.had;

	n->turns = had->turns;
	n->nturns = had->n;
	if (had->n > 0 && form_is_system(&had->turns[0])) {
		n->has_place = true;
		n->turns++;
		n->nturns--;
	}
	for (size_t i = 0; i < n->nturns; i++)
		place(n->arena, &n->turns[i], false);
	if (!n->has_place)
		return;
	n->kept = had->turns[0];
	place(n->arena, &n->kept, true);
}

static bool
is_same(struct join *n)
{
	struct buf *a = arena_buf(n->arena, PACKED_MAX), *b = arena_buf(n->arena, PACKED_MAX);
	struct form_turn kept = n->kept;

	kept.at = SIZE_MAX;
	form_pack(&n->lead, a);
	form_pack(&kept, b);
	return text_equal(buf_text(a), buf_text(b));
}

/* What is new to the store, with room for the answer. */
static void
choose_fresh(struct join *n)
{
	struct context *c = &n->j->context;
	const struct form *sent = n->sent;

	c->fresh = arena_alloc(n->arena, (sent->nturns + 2) * sizeof *c->fresh);
	c->first = TALK_APPEND;
	if (n->lead.nparts > 0 && !(n->has_place && is_same(n))) {
		c->fresh[c->nfresh++] = n->lead;
		if (c->had.n > 0)
			c->first = n->has_place ? TALK_REPLACE : TALK_PREPEND;
	}
	for (size_t i = n->nlead; i < sent->nturns; i++)
		c->fresh[c->nfresh++] = sent->turns[i];
}

static const struct form_call *
find_call(const struct form_turn *turn, struct span id)
{
	for (size_t i = 0; i < turn->nparts; i++)
		if (turn->parts[i].kind == FORM_CALL && text_equal(turn->parts[i].call.id, id))
			return &turn->parts[i].call;
	return NULL;
}

/* Results of calls that the reader has not seen, as they are stored. */
static void
name_results(struct join *n)
{
	const struct form_turn *calls = n->nturns > 0 ? &n->turns[n->nturns - 1] : NULL;
	struct form_turn *results = &n->sent->turns[n->nlead];

	if (calls == NULL || calls->role != FORM_ASSISTANT || n->nlead == n->sent->nturns ||
	    results->role != FORM_TOOL)
		return;
	for (size_t i = 0; i < results->nparts; i++) {
		struct form_result *result = &results->parts[i].result;
		const struct form_call *call = find_call(calls, result->id);

		if (call == NULL)
			continue;
		result->name = call->name;
		result->custom = call->custom;
	}
}

static struct form_turn
prompt_turn(struct join *n, struct span prompt)
{
	struct form_turn turn = {.role = FORM_SYSTEM, .at = FORM_AT_KEPT};

	form_add_part(n->arena, &turn, FORM_TEXT)->text = prompt;
	return turn;
}

static void
add(struct form *form, const struct form_turn *turns, size_t n)
{
	if (n > 0)
		memcpy(&form->turns[form->nturns], turns, n * sizeof *turns);
	form->nturns += n;
}

/* What leads, what is stored, what is new. */
static void
join_all(struct join *n)
{
	struct span prompt = n->j->s->conf->context.system_prompt;
	struct form *whole = &n->j->context.whole;
	const struct form *sent = n->sent;

	*whole = *sent;
	whole->turns = arena_alloc(n->arena, (sent->nturns + n->nturns + 2) * sizeof *whole->turns);
	whole->nturns = 0;
	add(whole, sent->turns, n->nlead);
	if (n->nlead == 0 && n->kept.nparts > 0) {
		add(whole, &n->kept, 1);
	} else if (n->lead.nparts == 0 && prompt.n > 0) {
		struct form_turn turn = prompt_turn(n, prompt);

		add(whole, &turn, 1);
	}
	add(whole, n->turns, n->nturns);
	add(whole, sent->turns + n->nlead, sent->nturns - n->nlead);
}

/* Of repeated results the last one stays: in what was read, too. */
static enum err
check(struct join *n, struct why *why)
{
	struct form *whole = &n->j->context.whole, *sent = &n->j->convert.form;
	size_t news = sent->nturns - n->nlead;
	enum err err = form_check(whole, why);

	for (size_t i = 0; i < news; i++)
		sent->turns[n->nlead + i].nparts = whole->turns[whole->nturns - news + i].nparts;
	if (err != ERR_OK && n->nturns > 0)
		err_prefix(why, "with what is kept of this conversation");
	return err;
}

enum err
context_join(struct serve_job *j, struct why *why)
{
	struct convert *convert = &j->convert;
	struct join n = {.j = j, .arena = j->s->arena, .sent = &convert->form};
	enum err err =
	    flow_wires[j->rq.endpoint->wire].read(n.arena, j->rq.read.body, &convert->form, why);

	if (err != ERR_OK)
		return err;
	take_lead(&n);
	take_stored(&n);
	name_results(&n);
	join_all(&n);
	err = check(&n, why);
	if (err != ERR_OK)
		return err;
	choose_fresh(&n);
	convert->state = CONVERT_READ;
	convert->say_bytes = (size_t)j->context.had.head.bytes;
	return ERR_OK;
}
