#include "dialect/trim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dialect/flow.h"
#include "lib/letters.h"

#define MB ((size_t)1 << 20)

static uint64_t seed;

static size_t
draw(size_t n)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (size_t)((seed * 2685821657736338717ULL) >> 33) % n;
}

static struct span
any_text(struct arena *arena)
{
	static const char *const pieces[] = {"word ", "\xe4\xb8\xad\xe6\x96\x87",
	    "\xf0\x9f\x8e\x89", "x = f(y);\n", "12345 ", "\xc3\xa9t\xc3\xa9 ", "----",
	    "aGVsbG8gd29ybGQ"};
	size_t n = draw(10) == 0 ? draw(300) : draw(8) == 0 ? 0 : draw(20);
	struct buf *b = arena_buf(arena, MB);

	buf_z(b, "");
	for (size_t i = 0; i < n; i++)
		buf_z(b, pieces[draw(NELEM(pieces))]);
	return buf_text(b);
}

static void
any_part(struct arena *arena, struct form_turn *turn)
{
	static const enum form_kind kinds[] = {FORM_TEXT, FORM_TEXT, FORM_TEXT, FORM_IMAGE,
	    FORM_DOCUMENT, FORM_THOUGHT, FORM_THOUGHT, FORM_REFUSAL};
	bool says = turn->role == FORM_ASSISTANT;
	enum form_kind kind = kinds[draw(turn->role == FORM_USER ? 5 : says ? 8 : 3)];
	struct form_part *part;

	if (says && (kind == FORM_IMAGE || kind == FORM_DOCUMENT))
		kind = FORM_TEXT;
	part = form_add_part(arena, turn, kind);
	if (kind == FORM_IMAGE)
		part->media.url = SPAN("https://x/y.png");
	else if (kind == FORM_DOCUMENT)
		part->media.plain = any_text(arena);
	else
		part->text = any_text(arena);
	if (kind == FORM_THOUGHT && draw(2) == 0)
		part->thought.seal = SPAN("sealed");
}

static void
any_exchange(struct arena *arena, struct form *form)
{
	static const char *const ids[] = {"a", "b", "c", "d"};
	struct form_turn *calls = form_add_turn(arena, form, FORM_ASSISTANT, form->nturns), *turn;

	for (size_t i = draw(2); i > 0; i--)
		any_part(arena, calls);
	for (size_t i = 1 + draw(3); i > 0; i--)
		letters_call(
		    arena, calls, ids[i], draw(9) == 0 ? letters_text(arena, draw(99)) : SPAN("x"));
	turn = form_add_turn(arena, form, FORM_TOOL, form->nturns);
	letters_results(arena, turn, turn - 1, any_text(arena));
}

static struct form
any_form(struct arena *arena)
{
	struct form form = {.max_output = -1, .thinking_budget = -1};

	for (size_t i = draw(3); i > 0; i--)
		any_part(arena, form_add_turn(arena, &form, draw(2) ? FORM_SYSTEM : FORM_DEVELOPER,
		                    form.nturns));
	for (size_t i = draw(24) + (form.nturns == 0); i > 0; i--) {
		static const enum form_role roles[] = {
		    FORM_USER, FORM_USER, FORM_USER, FORM_ASSISTANT, FORM_ASSISTANT, FORM_SYSTEM};
		size_t which = draw(NELEM(roles) + 4);
		struct form_turn *turn;

		if (which >= NELEM(roles)) {
			any_exchange(arena, &form);
			continue;
		}
		turn = form_add_turn(arena, &form, roles[which], form.nturns);
		for (size_t p = 1 + draw(3); p > 0; p--)
			any_part(arena, turn);
	}
	return form;
}

static bool
same_text(struct span is, struct span was, bool *cut)
{
	if (text_equal(is, was))
		return true;
	*cut = true;
	return letters_is_cut(is, was);
}

/* But for texts that were cut the bytes are the same. */
static bool
same_part(const struct form_part *is, const struct form_part *was, bool *cut)
{
	struct form_part like = *is;
	bool same = same_text(is->text, was->text, cut) &&
	            same_text(is->media.plain, was->media.plain, cut) &&
	            is->result.nparts == was->result.nparts;

	for (size_t i = 0; i < is->result.nparts && same; i++)
		same = same_text(is->result.parts[i].text, was->result.parts[i].text, cut) &&
		       is->result.parts[i].kind == was->result.parts[i].kind;
	like.text = was->text;
	like.media.plain = was->media.plain;
	like.result.parts = was->result.parts;
	return same && memcmp(&like, was, sizeof like) == 0;
}

/* The turn as it was, or cut. */
static bool
same_turn(const struct form_turn *is, const struct form_turn *was, bool *cut)
{
	bool same = is->role == was->role && is->at == was->at && is->nparts == was->nparts;

	for (size_t p = 0; p < is->nparts && same; p++)
		same = same_part(&is->parts[p], &was->parts[p], cut);
	return same;
}

struct round {
	struct form form;
	const struct tokens_model *model;
	struct trim_policy policy;
	struct trim trim;
	size_t lead, user;
};

static const char *
fault_of_turns(const struct round *r)
{
	const struct form *is = &r->trim.form, *was = &r->form;
	size_t at = 0, cuts = 0;
	bool user = r->user == SIZE_MAX;

	for (size_t i = 0; i < is->nturns; i++, at++) {
		bool cut = false;

		while (at < was->nturns && was->turns[at].at != is->turns[i].at)
			at++;
		if (at == was->nturns)
			return "order, or a turn that nobody wrote";
		if (!same_turn(&is->turns[i], &was->turns[at], &cut))
			return "a turn is another one";
		if (cut && (at < r->lead || at == r->user))
			return "what must not be cut is cut";
		if (i < r->lead && at != i)
			return "a leading text is gone";
		user |= at == r->user;
		cuts += cut;
	}
	if (!user)
		return "the newest message is gone";
	if (at != was->nturns)
		return "the last turn is gone";
	return r->trim.messages == was->nturns - is->nturns + cuts ? NULL : "not as many messages";
}

static const char *
fault_of(struct arena *arena, struct round *r)
{
	const struct trim *trim = &r->trim;
	const char *fault = fault_of_turns(r);
	struct form form = trim->form;
	struct trim again;
	struct why why;

	if (fault != NULL)
		return fault;
	if (r->policy.budget != 0 && trim->after > r->policy.budget)
		return "it does not fit";
	if (trim->before != tokens_form(r->model, &r->form) ||
	    trim->after != tokens_form(r->model, &form))
		return "counted wrong";
	if (r->policy.way != TRIM_ROUNDS && trim->messages > 0 && trim->before <= r->policy.budget)
		return "trimmed without need";
	if (form_check(&form, &why) != ERR_OK)
		return arena_print(arena, "not valid: %s", why.text);
	if (trim_form(arena, &form, &r->policy, &again, &why) != ERR_OK || again.messages != 0)
		return "not the same once more";
	return NULL;
}

/* A conversation of answers alone, or of nothing, is no input to anybody. */
static bool
is_asked(const struct form *form)
{
	for (size_t i = 0; i < form->nturns; i++)
		for (size_t p = 0; form->turns[i].role == FORM_USER && p < form->turns[i].nparts;
		     p++)
			if (form->turns[i].parts[p].kind != FORM_TEXT ||
			    form->turns[i].parts[p].text.n > 0)
				return true;
	return false;
}

/* Each API's writer takes what is left where it took the whole, and its reader finds it right. */
static const char *
fault_of_writers(struct arena *arena, const struct round *r, unsigned *written)
{
	struct form_target target = {.model = SPAN("m"),
	    .channel = SPAN("c"),
	    .provider = "openai-compatible",
	    .max_output = -1};

	for (int wire = 0; wire < FORM_WIRE__MAX && is_asked(&r->trim.form); wire++) {
		struct buf *whole = arena_buf(arena, 16 * MB), *out = arena_buf(arena, 16 * MB);
		struct form_loss loss = {.names = NULL}, more = {.names = NULL};
		const struct flow_wire *w = &flow_wires[wire];
		struct form again;
		struct why why;

		target.wire = (enum form_wire)wire;
		if (w->write(arena, &r->form, &target, whole, &loss, &why) != ERR_OK ||
		    w->read(arena, buf_text(whole), &again, &why) != ERR_OK ||
		    form_check(&again, &why) != ERR_OK)
			continue;
		(*written)++;
		if (w->write(arena, &r->trim.form, &target, out, &more, &why) != ERR_OK ||
		    w->read(arena, buf_text(out), &again, &why) != ERR_OK ||
		    form_check(&again, &why) != ERR_OK)
			return arena_print(arena, "%s: %s", w->dialect->name, why.text);
	}
	return NULL;
}

/* Only what cannot fit, and by what its text says. */
static void
check_refused(const struct round *r, const struct why *why)
{
	long long stays = 0, room = 0;

	if (sscanf(why->text,
	        "the conversation does not fit: what has to stay of it is %lld tokens, and there "
	        "is room for %lld",
	        &stays, &room) != 2)
		fail_msg("refused by: %s", why->text);
	if (room != r->policy.budget || stays <= room || stays > tokens_form(r->model, &r->form) ||
	    stays < trim_least(&r->form, r->model))
		fail_msg("refused what fits: %s", why->text);
}

static struct round
any_round(struct arena *arena, const struct tokens_model *model)
{
	struct round r = {.form = any_form(arena), .model = model, .user = SIZE_MAX};
	size_t most = (size_t)tokens_form(model, &r.form) * 5 / 4 + 1;

	r.policy = (struct trim_policy){
	    .model = r.model, .way = (enum trim_way)draw(2), .rounds = (int64_t)draw(6)};
	if (draw(10) > 0)
		r.policy.budget = (int64_t)(draw(2) ? draw(most) : draw(most / 4 + 1));
	r.lead = form_leading(&r.form);
	for (size_t i = 0; i < r.form.nturns; i++)
		if (r.form.turns[i].role == FORM_USER)
			r.user = i;
	return r;
}

static void
test_random(void **state)
{
	struct tokens_model model = tokens_model(NULL, SPAN("gpt-4o"));
	unsigned refused = 0, trimmed = 0, written = 0;

	(void)state;
	for (uint64_t i = 1; i <= 2000; i++) {
		struct arena *arena = arena_new(512 * MB);
		const char *fault = NULL;
		struct why why = {""};
		struct round r;

		seed = i * 0x9e3779b97f4a7c15ULL;
		r = any_round(arena, &model);
		if (trim_form(arena, &r.form, &r.policy, &r.trim, &why) != ERR_OK) {
			refused++;
			check_refused(&r, &why);
		} else {
			fault = fault_of(arena, &r);
			if (fault == NULL && i % 3 == 0)
				fault = fault_of_writers(arena, &r, &written);
			trimmed += r.trim.messages > 0;
		}
		if (fault != NULL)
			fail_msg("conversation %llu: %s", (unsigned long long)i, fault);
		arena_free(&arena);
	}
	/* the draws are worth something */
	assert_in_range(trimmed, 600, 2000);
	assert_in_range(refused, 200, 1200);
	assert_in_range(written, 500, 6000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
