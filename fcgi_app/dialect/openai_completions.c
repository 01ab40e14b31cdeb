#include "dialect/openai.h"
#include "dialect/read.h"

static enum err
check(const struct dialect_request *request, struct why *why)
{
	enum err err = dialect_check_model(request, why);

	return err == ERR_OK ? dialect_check_text(&request->prompt, "prompt", why) : err;
}

const struct dialect dialect_completions = {
    .name = "completions",
    .path = "/completions",
    .judged = false,
    .streams = true,
    .usage_option = true,
    .check = check,
    .event = openai_event,
    .answer = openai_answer,
    .end_marker = "data: [DONE]\n\n",
    .error_body = openai_error_body,
    .error_event = openai_error_event,
};
