#include "dialect/openai.h"
#include "dialect/read.h"

static enum err
check(const struct dialect_request *request, struct why *why)
{
	enum err err = dialect_check_model(request, why);

	return err == ERR_OK ? dialect_check_messages(request, why) : err;
}

const struct dialect dialect_chat = {
    .name = "chat",
    .path = "/chat/completions",
    .judged = true,
    .streams = true,
    .usage_option = true,
    .check = check,
    .event = openai_event,
    .answer = openai_answer,
    .end_marker = "data: [DONE]\n\n",
    .error_body = openai_error_body,
    .error_event = openai_error_event,
};
