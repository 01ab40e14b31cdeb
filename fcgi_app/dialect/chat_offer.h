/*
 * chat_offer - the tools of a form, and the choice among them, for a chat upstream.
 *
 * Source    formats.md A.3, A.9, E.4, E.10; cases.md TOOL-18
 */
#ifndef DIALECT_CHAT_OFFER_H
#define DIALECT_CHAT_OFFER_H

#include "dialect/chat_say.h"

enum err chat_offer_tools(struct chat_writer *w) MUST_CHECK;

#endif
