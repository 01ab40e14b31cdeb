/*
 * seal - marks what only its maker can read (signatures of thinking, encrypted reasoning) with whose
 * it is, so that it goes back to the same channel or is left out whole.
 *
 * A seal is text that any client hands back unchanged: "sl1.WIRE.CHANNEL.PAYLOAD", CHANNEL being 12
 * hex digits of the SHA-256 of the channel's name. On the same wire nothing is sealed: bytes pass.
 * What carries no such mark is the client's own business with that wire: `seal_open` gives it back
 * as it is, with no channel.
 *
 * Source    formats.md E.0 rule 7, B.7, C.3; cases.md CONV-09, CONV-10
 */
#ifndef DIALECT_SEAL_H
#define DIALECT_SEAL_H

#include "dialect/form.h"

struct seal {
	bool marked;         /* one of ours */
	enum form_wire wire; /* where marked */
	struct span payload;
};

struct span seal_make(
    struct arena *arena, enum form_wire wire, struct span channel, struct span payload);
/* Whose it is: `channel` is who would get it. False: another channel's, or another wire's. */
bool seal_fits(
    struct span text, enum form_wire wire, struct span channel, struct span *payload_out);
struct seal seal_open(struct span text);

#endif
