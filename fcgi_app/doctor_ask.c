#include "doctor_ask.h"

static const char *const works[] = {
    [DOCTOR_ECHO] = "echo", [DOCTOR_STREAM] = "stream", [DOCTOR_SWALLOW] = "swallow"};

static bool
read_work(struct span word, enum doctor_work *work_out)
{
	for (size_t i = 0; i < NELEM(works); i++)
		if (text_is(word, works[i])) {
			*work_out = (enum doctor_work)i;
			return true;
		}
	return false;
}

static bool
read_pair(struct span pair, struct doctor_ask *ask)
{
	size_t equals = text_find(pair, SPAN("="));
	struct span name = {pair.p, equals}, value = text_from(pair, equals + 1);

	if (text_is(name, "do"))
		return read_work(value, &ask->work);
	if (text_is(name, "n"))
		return text_i64(value, 1, DOCTOR_EVENTS_MAX, &ask->n);
	if (text_is(name, "gap"))
		return text_i64(value, 0, DOCTOR_GAP_MS, &ask->gap_ms);
	if (text_is(name, "first"))
		return text_i64(value, 0, DOCTOR_GAP_MS, &ask->first_ms);
	return false;
}

enum err
doctor_ask_read(struct span query, struct doctor_ask *ask_out, struct why *why)
{
	struct doctor_ask ask = {.work = DOCTOR_ECHO, .n = 1};
	struct span pair;
	char clean[64];

	while (text_token(&query, "&", &pair))
		if (!read_pair(pair, &ask)) {
			text_clean(clean, sizeof clean, pair);
			err_why(why, "'%s' is not a parameter of this path, or out of its bounds",
			    clean);
			return ERR_BAD_INPUT;
		}
	if (ask.first_ms + (ask.n - 1) * ask.gap_ms > DOCTOR_TOTAL_MS) {
		err_why(why, "that would take more than %d s", DOCTOR_TOTAL_MS / 1000);
		return ERR_BAD_INPUT;
	}
	*ask_out = ask;
	return ERR_OK;
}

uint64_t
doctor_ask_sum(uint64_t sum, struct span bytes)
{
	for (size_t i = 0; i < bytes.n; i++)
		sum = (sum ^ (unsigned char)bytes.p[i]) * UINT64_C(0x100000001b3);
	return sum;
}
