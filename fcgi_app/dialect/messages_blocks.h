/*
 * messages_blocks - the conversation of a Messages request: system text, messages, their blocks.
 *
 * Results of tools stand before what else a user's message holds. Empty texts are left out. Blocks
 * of the host's own tools are kept as they stand, for their own wire.
 *
 * Source    formats.md C.2, C.3, C.12, E.4; cases.md TOOL-09, TOOL-10, CONV-01, CONV-02, CONV-09
 */
#ifndef DIALECT_MESSAGES_BLOCKS_H
#define DIALECT_MESSAGES_BLOCKS_H

#include "dialect/messages_place.h"

enum err messages_blocks_system(struct messages_reader *r, const struct scan_value *v) MUST_CHECK;
enum err messages_blocks_messages(struct messages_reader *r, const struct scan_value *v) MUST_CHECK;

#endif
