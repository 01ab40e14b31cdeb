#include "dialect/flow.h"

const struct flow_wire flow_wires[FORM_CLIENT_WIRES] = {
    [FORM_CHAT] =
        {
            .dialect = &dialect_chat,
            .read = form_read_chat,
            .write = form_write_chat,
            .reader = &flow_read_chat,
            .writer = &flow_write_chat,
            .answer = flow_answer_chat,
        },
    [FORM_MESSAGES] =
        {
            .dialect = &dialect_messages,
            .read = form_read_messages,
            .write = form_write_messages,
            .reader = &flow_read_messages,
            .writer = &flow_write_messages,
            .answer = flow_answer_messages,
        },
    [FORM_RESPONSES] =
        {
            .dialect = &dialect_responses,
            .read = form_read_responses,
            .write = form_write_responses,
            .reader = &flow_read_responses,
            .writer = &flow_write_responses,
            .answer = flow_answer_responses,
        },
    [FORM_RUN] =
        {
            .dialect = &dialect_run,
            .read = form_read_run,
            .writer = &flow_write_run,
            .answer = flow_answer_run,
        },
};

struct form *
flow_read(struct arena *arena, enum form_wire wire, struct span body, struct why *why)
{
	struct form *form = arena_alloc(arena, sizeof *form);

	return flow_wires[wire].read(arena, body, form, why) == ERR_OK ? form : NULL;
}
