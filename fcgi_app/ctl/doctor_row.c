#include "ctl/doctor_row.h"

#include "base/json.h"

#include <stdio.h>

#define LIMIT_MS 20000

static void PRINTF_LIKE(4, 0) say(struct doctor *d, enum doctor_result result,
    enum doctor_trouble trouble, const char *fmt, va_list args)
{
	char text[sizeof d->found.text];

	vsnprintf(text, sizeof text, fmt, args);
	d->found.result = result;
	d->found.trouble = trouble;
	text_clean(d->found.text, sizeof d->found.text, text_span(text));
}

void
doctor_ok(struct doctor *d, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(d, DOCTOR_OK, DOCTOR_NO_TROUBLE, fmt, args);
	va_end(args);
}

void
doctor_note(struct doctor *d, enum doctor_trouble trouble, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(d, DOCTOR_NOTE, trouble, fmt, args);
	va_end(args);
}

void
doctor_problem(struct doctor *d, enum doctor_trouble trouble, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(d, DOCTOR_PROBLEM, trouble, fmt, args);
	va_end(args);
}

void
doctor_ask(struct doctor *d, const struct doctor_call *call, struct doctor_answer *answer_out)
{
	struct doctor_call own = *call;
	char header[DOCTOR_NONCE + 32];
	size_t n = 0;

	if (own.limit_ms == 0)
		own.limit_ms = LIMIT_MS;
	while (n < DOCTOR_CALL_HEADERS && own.headers[n] != NULL)
		n++;
	if (d->nonce[0] != '\0' && n < DOCTOR_CALL_HEADERS) {
		snprintf(header, sizeof header, "X-Sluice-Doctor: %s", d->nonce);
		own.headers[n] = header;
	}
	doctor_call_run(&d->peer, &own, answer_out);
	if (answer_out->fault == DOCTOR_FAULT_INTERRUPTED)
		d->interrupted = true;
}

void
doctor_outcome(const struct doctor_answer *answer, char text[DOCTOR_OUTCOME])
{
	if (answer->status == 0)
		snprintf(text, DOCTOR_OUTCOME, "no answer: %s", answer->error);
	else if (answer->fault != DOCTOR_FAULT_NONE)
		snprintf(text, DOCTOR_OUTCOME, "HTTP %d, then the connection broke: %s",
		    answer->status, answer->error);
	else
		snprintf(text, DOCTOR_OUTCOME, "HTTP %d of the %s", answer->status,
		    answer->ours ? "gateway" : "web server");
}

bool
doctor_is_refused(const struct doctor_answer *answer)
{
	return answer->status == 401 || answer->status == 403;
}

struct span
doctor_code(struct doctor *d, const struct doctor_answer *answer)
{
	const struct json *doc;
	struct span code;
	struct why why;

	if (!answer->ours || json_parse(d->arena, buf_text(&answer->body), &doc, &why) != ERR_OK ||
	    !json_text(doc, "error.code", &code))
		return (struct span){"", 0};
	return code;
}
