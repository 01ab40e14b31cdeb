/*
 * chat_host - what the hosts of chat completions take and how they want it: one row each.
 *
 * Source    formats.md A.8, A.9, E.7
 */
#ifndef DIALECT_CHAT_HOST_H
#define DIALECT_CHAT_HOST_H

#include "base/emit.h"
#include "dialect/form.h"

/* How a host is told to think. */
enum chat_thinking {
	CHAT_EFFORT, /* reasoning_effort */
	CHAT_TYPE,   /* thinking:{type} */
	CHAT_BOTH,   /* thinking:{type}, and reasoning_effort where one is asked for */
	CHAT_KIMI,   /* K3: reasoning_effort, before it thinking:{type} */
	CHAT_ENABLE, /* enable_thinking, thinking_budget */
	CHAT_OBJECT, /* reasoning:{effort | max_tokens | enabled} */
};

/* Which earlier thoughts a host wants to see again, as reasoning_content. */
enum chat_replay {
	CHAT_REPLAY_NONE,
	CHAT_REPLAY_CALLS, /* of answers with calls; "" where there is none */
	CHAT_REPLAY_ALL,
};

enum chat_choice {
	CHAT_CHOICE_ALL,
	CHAT_CHOICE_UNFORCED, /* no "required", no named tool while it thinks */
	CHAT_CHOICE_AUTO,     /* only "auto" */
};

struct chat_host {
	const char *name;
	bool openai; /* store, metadata, service_tier, prompt_cache_key, verbosity, allowed_tools */
	bool developer; /* the role */
	bool strict;    /* in tools */
	bool parallel;  /* parallel_tool_calls */
	bool schema;    /* response_format json_schema */
	bool files;     /* parts with documents */
	bool caches;    /* cache_control on parts */
	bool top_k;
	const char *max_tokens;                /* the name */
	const char *user;                      /* the name */
	const char *efforts[FORM_EFFORT_AUTO]; /* by enum form_effort; NULL: no word for it */
	enum chat_thinking thinking;
	enum chat_replay replay;
	enum chat_choice choice;
	size_t stops; /* how many, 0 = any number */
	/* bounds in millionths, 0 = none */
	int64_t temperature_min, temperature_max, top_p_min, top_p_max;
};

/* The row of a provider; unknown names have that of "openai-compatible". */
const struct chat_host *chat_host_of(const char *provider);

/* A model of OpenAI that refuses sampling parameters. */
bool chat_host_is_reasoner(
    const struct chat_host *host, const struct form_target *target, const struct form *form);
/* Whether the model will think. */
bool chat_host_thinks(
    const struct chat_host *host, const struct form_target *target, const struct form *form);

/* Write the switches for thinking. False: what was asked for has no word there. */
bool chat_host_thinking(const struct chat_host *host, const struct form_target *target,
    const struct form *form, struct emit *e);

#endif
