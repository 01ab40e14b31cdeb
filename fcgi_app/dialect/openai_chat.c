#include "dialect/openai.h"
#include "dialect/read.h"

static enum err
check(const struct dialect_request *request, struct why *why)
{
	struct scan_value message;
	struct span none;
	size_t at = 0, n = 0;
	enum err err = dialect_check_model(request, why);

	if (err != ERR_OK)
		return err;
	if (request->messages.type == SCAN_ABSENT) {
		err_why(why, "'messages' is missing: an array of message objects is wanted");
		return ERR_BAD_INPUT;
	}
	if (request->messages.type != SCAN_ARRAY) {
		err_why(why, "'messages' must be an array of message objects");
		return ERR_BAD_INPUT;
	}
	for (; scan_next(request->messages.raw, &at, &none, &message); n++) {
		if (message.type != SCAN_OBJECT) {
			err_why(why, "'messages[%zu]' must be a message object", n);
			return ERR_BAD_INPUT;
		}
	}
	if (n == 0) {
		err_why(why, "'messages' must hold at least one message");
		return ERR_BAD_INPUT;
	}
	return ERR_OK;
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
