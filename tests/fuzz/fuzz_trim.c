/*
 * fuzz_trim - bytes taken as a conversation and a budget: what is left of it is valid, fits, holds the newest message,
 * and is the same when it is trimmed once more; or it is refused with a reason.
 *
 * Bytes     way, rounds, two of the budget; then for each turn its kind, its size, and as many bytes of text
 */
#include "dialect/trim.h"

#include <stdlib.h>

#define MB ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

struct input {
	const uint8_t *bytes;
	size_t n, at;
	struct arena *arena;
};

static unsigned
next(struct input *in)
{
	return in->at < in->n ? in->bytes[in->at++] : 0;
}

/* Text of that many characters, of one to four bytes each. */
static struct span
text_of(struct input *in, size_t n)
{
	static const char *const wide[] = {
	    "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x8e\x89", "\n", " "};
	struct buf *b = arena_buf(in->arena, 4 * MB);

	buf_z(b, "");
	for (size_t i = 0; i < n; i++) {
		unsigned c = next(in);

		if (c >= 0x20 && c < 0x7f)
			buf_char(b, (char)c);
		else
			buf_z(b, wide[c % NELEM(wide)]);
	}
	return buf_text(b);
}

static void
add_exchange(struct input *in, struct form *form, unsigned kind, size_t size)
{
	struct form_turn *turn = form_add_turn(in->arena, form, FORM_ASSISTANT, form->nturns);
	size_t calls = 1 + kind / 8 % 3;

	if (kind & 64)
		form_add_part(in->arena, turn, FORM_THOUGHT)->text = text_of(in, size);
	for (size_t i = 0; i < calls; i++)
		form_add_part(in->arena, turn, FORM_CALL)->call = (struct form_call){
		    .id = {&"abc"[i], 1}, .name = SPAN("f"), .arguments = SPAN("{}")};
	turn = form_add_turn(in->arena, form, FORM_TOOL, form->nturns);
	for (size_t i = 0; i < calls; i++) {
		struct form_part *inner = arena_alloc(in->arena, sizeof *inner);

		*inner = (struct form_part){.kind = FORM_TEXT, .text = text_of(in, size)};
		form_add_part(in->arena, turn, FORM_RESULT)->result =
		    (struct form_result){.id = {&"abc"[i], 1}, .parts = inner, .nparts = 1};
	}
}

static struct form
form_of(struct input *in)
{
	static const enum form_role roles[] = {
	    FORM_SYSTEM, FORM_DEVELOPER, FORM_USER, FORM_USER, FORM_ASSISTANT, FORM_ASSISTANT};
	struct form form = {.max_output = -1, .thinking_budget = -1};

	while (in->at < in->n || form.nturns == 0) {
		unsigned kind = next(in);
		size_t size = next(in) * (kind & 128 ? 64U : 1U);

		if (kind % 8 >= NELEM(roles))
			add_exchange(in, &form, kind, size);
		else
			form_add_part(in->arena,
			    form_add_turn(in->arena, &form, roles[kind % 8], form.nturns),
			    FORM_TEXT)
			    ->text = text_of(in, size);
	}
	return form;
}

static size_t
newest_user(const struct form *form)
{
	for (size_t i = form->nturns; i > 0; i--)
		if (form->turns[i - 1].role == FORM_USER)
			return i - 1;
	return SIZE_MAX;
}

static void
check(struct input *in, const struct form *form, const struct tokens_model *model,
    const struct trim_policy *policy, const struct trim *trim)
{
	size_t user = newest_user(form), left = newest_user(&trim->form);
	struct form is = trim->form;
	struct trim again;
	struct why why;

	must(policy->budget == 0 || trim->after <= policy->budget);
	must(trim->after == tokens_form(model, &is) && trim->before == tokens_form(model, form));
	must((user == SIZE_MAX) == (left == SIZE_MAX));
	must(user == SIZE_MAX ||
	     (is.turns[left].at == user &&
	         text_equal(is.turns[left].parts[0].text, form->turns[user].parts[0].text)));
	for (size_t i = 1; i < is.nturns; i++)
		must(is.turns[i - 1].at < is.turns[i].at);
	must(form_check(&is, &why) == ERR_OK);
	must(trim_form(in->arena, &is, policy, &again, &why) == ERR_OK);
	must(again.messages == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = {.bytes = bytes, .n = n, .arena = arena_new((size_t)1 << 30)};
	struct tokens_model model = tokens_model(NULL, SPAN("gpt-4o"));
	struct trim_policy policy = {.model = &model,
	    .way = (enum trim_way)(next(&in) % 2),
	    .rounds = (int64_t)(next(&in) % 8)};
	struct why why = {""};
	struct trim trim;
	struct form form;

	policy.budget = next(&in);
	policy.budget = policy.budget << 6 | (next(&in) & 63);
	form = form_of(&in);
	if (trim_form(in.arena, &form, &policy, &trim, &why) == ERR_OK)
		check(&in, &form, &model, &policy, &trim);
	else
		must(why.text[0] != '\0' && policy.budget != 0);
	arena_free(&in.arena);
	return 0;
}
