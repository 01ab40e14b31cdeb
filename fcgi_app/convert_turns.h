/*
 * convert_turns - the client's own bytes with another conversation in their list: what is kept of it goes in, what was
 * trimmed is left out or written anew, and all else stays byte for byte as it was sent.
 *
 * Sent      a message is as it was sent while each of its parts is the one that was read from it (form.h: `at`); of
 *           which none is left goes; any other is written by the wire's own writer, as what is kept is
 * Results   of kept calls are written anew where the writer gives those other ids
 * System    that leads, of the messages API: kept texts stand behind those of the client in "system"
 * Errors    ERR_BAD_INPUT: the wire cannot be given what is kept
 * Source    SPEC.md sections 5 and 13
 */
#ifndef CONVERT_TURNS_H
#define CONVERT_TURNS_H

#include "convert.h"

/* c->say in place of what c->form was read from: the body, read. What could not be kept goes to c->way.loss. */
enum err convert_turns(struct convert *c, const struct convert_target *target,
    struct dialect_request *read_out, struct why *why) MUST_CHECK;

#endif
