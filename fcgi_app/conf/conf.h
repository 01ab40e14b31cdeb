/*
 * conf - the checked, immutable configuration.
 *
 * Built from one JSON file (comments allowed) by conf_load(); a reload builds a new one in its own arena. Every setting
 * is a row of options.c: from it come parsing, bounds, defaults, messages, `sluicectl options` and examples/full.json.
 *
 * Units     *_ms milliseconds, *_bytes bytes, *_micros millionths; 0 means what the option's help says
 * Memory    everything lives in the conf's own arena until conf_free()
 * Text      ${NAME} and ${file:PATH} in a string are replaced; a literal "${" is written "$${"
 * Errors    conf_load() reports every fault, not only the first: see conf_report
 * Source    SPEC.md section 3
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include "base/buf.h"
#include "base/secret.h"
#include "base/zone.h"
#include "conf/provider.h"

#define CONF_AUTO "auto" /* the model that tasks choose, where `models` has no entry of that name */
#define CONF_TASK_DEFAULT "default" /* in routing.tasks: for whatever has no entry there */

/* Tokens: a prompt of one word takes 8 (formats.md G.5), its answer one. No window is smaller. */
#define CONF_WINDOW_MIN 9

struct conf_strings {
	struct span *at;
	size_t n;
};

struct conf_numbers {
	int64_t *at;
	size_t n;
};

enum conf_auth { CONF_AUTH_WEB_SERVER, CONF_AUTH_KEYS, CONF_AUTH_OPEN };
enum conf_strategy {
	CONF_ADAPTIVE,
	CONF_ROUND_ROBIN,
	CONF_WEIGHTED_ROUND_ROBIN,
	CONF_WEIGHTED_RANDOM,
	CONF_QUOTA,
	CONF_LEAST_IN_FLIGHT,
	CONF_LEAST_USED,
	CONF_LRU,
	CONF_LATENCY,
	CONF_FILL_FIRST,
};
enum conf_all_cooling { CONF_COOLING_GUESSED, CONF_COOLING_ANY, CONF_COOLING_OFF };
enum conf_trouble { CONF_TROUBLE_DETOUR, CONF_TROUBLE_UNBIND };
enum conf_probe_failure { CONF_PROBE_COUNT, CONF_PROBE_DISABLE };
enum conf_trim { CONF_TRIM_ROUNDS, CONF_TRIM_DYNAMIC, CONF_TRIM_SUMMARY };
enum conf_conflict { CONF_CONFLICT_WAIT, CONF_CONFLICT_REFUSE };
enum conf_routing {
	CONF_ROUTE_WEIGHTED_RANDOM,
	CONF_ROUTE_PERFORMANCE,
	CONF_ROUTE_COST_FIRST,
	CONF_ROUTE_TASK,
	CONF_ROUTE_MIXED,
};
enum conf_log_level { CONF_LOG_DEBUG, CONF_LOG_INFO, CONF_LOG_WARN, CONF_LOG_ERROR };
enum conf_log_format { CONF_LOG_JSON, CONF_LOG_TEXT };
/* bits of channel_breaker.triggers */
enum conf_trigger {
	CONF_TRIGGER_POOL_EXHAUSTED = 1,
	CONF_TRIGGER_ERROR_RATE = 2,
	CONF_TRIGGER_LATENCY = 4,
	CONF_TRIGGER_CONSECUTIVE_FAIL = 8,
};

/* What a channel may override. Each channel has its own copy, already merged. */
struct conf_policy {
	struct {
		int64_t connect_timeout_ms, first_byte_timeout_ms, plain_timeout_ms;
		int64_t first_content_timeout_ms, idle_timeout_ms;
		int64_t max_attempts, retry_backoff_ms, retry_backoff_max_ms;
		struct span ca_file, proxy;
		int64_t heartbeat_ms, max_event_bytes;
	} upstream;
	struct {
		int strategy; /* enum conf_strategy */
		int64_t max_in_flight, queue_timeout_ms, queue_size, shortlist, min_pick_gap_ms;
		double credit_factor, success_factor, idle_weight_per_hour, idle_weight_max;
		bool cost_tiers;
		double cost_alpha;
		int64_t cost_ttl_ms, cost_explore_ms;
		int all_cooling; /* enum conf_all_cooling */
		int64_t disable_after;
	} pool;
	struct {
		int64_t soft_rate_ms, soft_rate_max_ms, stated_max_ms, not_found_ms, overload_ms;
		int hard_credit_minute; /* of the day: "04:00" is 240 */
		struct span timezone;
		const struct zone *zone;
		int64_t session_dead_after, auth_failed_after;
	} cooldown;
	struct {
		int64_t threshold;
		struct conf_numbers backoff_ms; /* the last repeats */
		double ratio;
		int64_t ratio_requests;
	} breaker;
	struct {
		unsigned triggers; /* bits of enum conf_trigger */
		double error_rate;
		int64_t error_window_ms, error_min_requests, latency_ms, latency_window_ms;
		int64_t consecutive_fail, recovery_timeout_ms, half_open_requests,
		    half_open_success;
		int64_t reopen_ms;
	} channel_breaker;
};

struct conf_header {
	struct span name, value;
};

struct conf_account {
	struct span id; /* unique in its channel; [A-Za-z0-9._@-], 1..64 */
	struct secret key;
	uint8_t fingerprint[8]; /* first 8 bytes of SHA-256 of the key */
	bool enabled;
	struct span realm;
	double weight;
	int64_t priority;           /* lower is better */
	struct conf_strings models; /* patterns; none = any */
	bool has_credits;
	int64_t credits_micros;
	int64_t max_in_flight; /* own, else the pool's; 0 = no limit */
	struct span proxy;
	struct conf_header *headers;
	size_t nheaders;
	struct {
		int64_t total_tokens, rpm, rpd, tpm, tpd; /* 0 = none */
	} quota;
};

/* A rule that the operator put before the built-in ones. An empty field matches anything. */
struct conf_rule {
	int64_t status; /* 0 = any */
	struct span code, type, text, header;
	struct span kind; /* one of the verdict names of SPEC.md section 6, checked at load */
};

struct conf_channel {
	struct span name;
	size_t index; /* in conf.channels */
	const struct provider *provider;
	enum provider_wire wire;
	struct span base_url; /* no trailing slash */
	struct conf_strings models;
	size_t *fallback; /* indexes of channels */
	size_t nfallback;
	struct {
		struct span url, method, credits;
		struct conf_numbers at_minute;
	} balance;
	struct conf_rule *rules;
	size_t nrules;
	struct conf_policy policy;
	struct {
		bool no_stream_options, developer_as_system, force_stream;
		struct span max_tokens; /* "", "max_tokens" or "max_completion_tokens" */
	} quirks;
	struct conf_account
	    *accounts; /* those of the file, then those of accounts_dir by file name */
	size_t naccounts;
	size_t naccounts_inline;  /* the first so many stand in the file */
	struct span accounts_dir; /* absolute; empty = none */
};

struct conf_cost {
	bool given; /* false: the price is unknown; true with zeros: it is free */
	int64_t input_micros, output_micros, cached_micros; /* per 1,000 tokens */
};

struct conf_target {
	size_t channel; /* index */
	struct span model;
	double weight;
	int64_t context_window, max_output; /* 0 = unknown */
	struct conf_cost cost;
	struct conf_strings tasks;
	struct conf_header *defaults; /* name and raw JSON value */
	size_t ndefaults;
};

struct conf_model {
	struct span name;
	struct conf_target *targets; /* what a target lacked is filled in from the entry */
	size_t ntargets;
	int64_t context_window, max_output;
	struct conf_cost cost;
	struct conf_strings tasks;
	struct conf_header *defaults;
	size_t ndefaults;
	int strategy; /* enum conf_routing, or -1 */
	struct span realm;
};

/* What models_file says of a name. */
struct conf_fact {
	struct span name;
	int64_t context_window, max_output; /* 0 = unknown */
	struct conf_cost cost;
};

struct conf_task {
	struct span name;
	struct conf_strings models; /* routing.tasks: a model name or a list of them */
};

struct source;

struct conf {
	struct arena *arena;
	const struct source
	    *sources;     /* every file that was read, and every accounts_dir: see conf_changed() */
	struct span path; /* of the file, absolute */
	struct span state_dir; /* absolute */
	struct {
		int64_t workers_min, workers_spare, workers_max, max_requests, drain_timeout_ms;
		int64_t client_timeout_ms, max_body_bytes;
		struct conf_strings cors_origins;
		struct span user, mount;
	} server;
	struct {
		int mode; /* enum conf_auth */
		struct conf_strings user_variables, admins;
		struct span keys_file;
	} auth;
	struct {
		bool enabled;
		int64_t ttl_ms, gc_interval_ms;
		int on_trouble;
		int64_t detour_max_ms;
		struct conf_strings headers, keys;
	} sticky;
	struct {
		int64_t recover_every_ms;
		bool recover_chat;
		int64_t active_every_ms;
		struct span active_prompt;
		int on_failure;
	} probe;
	struct {
		double below;
		struct span message;
	} degrade;
	struct {
		bool enabled;
		int trim;
		int64_t rounds;
		double margin;
		int64_t ttl_ms, max_tokens, max_session_bytes, max_total_bytes;
		int on_conflict;
		struct span summary_model, system_prompt;
	} context;
	struct {
		int default_strategy, fallback;
		double min_success_rate;
		int64_t window_ms, model_fail_after, model_cooldown_ms;
		struct conf_task *tasks;
		size_t ntasks;
		struct span classifier;
	} routing;
	struct {
		int64_t max_size_bytes;
	} store;
	struct {
		struct span command, url;
	} alerts;
	struct {
		struct span statsd;
	} metrics;
	struct {
		struct span url, prefix;
		int64_t timeout_ms;
	} redis;
	struct {
		int level, format;
		struct span target; /* "stderr", "syslog" or a path */
	} log;
	struct conf_policy policy; /* the defaults that channels start from */
	struct span models_file;   /* absolute; empty = none */
	struct conf_fact *facts;   /* of models_file, by name: see known.h */
	size_t nfacts;
	struct conf_model *models;
	size_t nmodels;
	struct conf_channel *channels;
	size_t nchannels;
};

enum conf_level { CONF_NOTE, CONF_FAULT };

/* One finding, complete as a line for people: path, line, key, reason, nearest valid key. */
struct conf_finding {
	enum conf_level level;
	char text[512];
};

struct conf_report {
	struct conf_finding *at;
	size_t n, cap;
	size_t faults;
};

void conf_report_release(struct conf_report *report);

/*
 * Find the configuration: `given` (-c) or SLUICE_CONFIG, or sluice.json beside the binary, or
 * ~/.config/sluice/sluice.json (home from the passwd entry), or /etc/sluice/sluice.json.
 */
enum err conf_find(const char *given, char *path_out, size_t cap, struct why *why) MUST_CHECK;

/*
 * Load and check. On ERR_OK *conf_out is complete and report holds notes only; on failure report holds every fault, and
 * its first stands in `why` too. `report` begins zeroed, or is NULL where only the first fault matters.
 */
enum err conf_load(const char *path, struct conf **conf_out, struct conf_report *report,
    struct why *why) MUST_CHECK;
void conf_free(struct conf **conf);

/*
 * Does any file it was made of (accounts_dir and ${file:...} too) differ now from what was loaded? One stat() each.
 */
bool conf_changed(const struct conf *conf);
/* The same, of what lies in accounts_dir of any channel alone: looked at although there is a master. */
bool conf_dirs_changed(const struct conf *conf);

/* Is any of those files below `document_root`, so that the web server might serve it? */
bool conf_is_exposed(const struct conf *conf, struct span document_root);

/*
 * The effective configuration as a file that parses to the same: keys and header values masked, what a channel overrides
 * shown with it, accounts of accounts_dir left where they are.
 */
void conf_print(const struct conf *conf, struct buf *out);

struct conf_channel *conf_channel(const struct conf *conf, struct span name);     /* or NULL */
struct conf_account *conf_account(const struct conf_channel *ch, struct span id); /* or NULL */
struct conf_model *conf_model(const struct conf *conf, struct span name);         /* or NULL */
/* Is it a name that some API has for the limit on an answer's tokens: max_tokens, max_completion_tokens, max_output_tokens? */
bool conf_is_limit(struct span field);
/* How a target of the entry is chosen: its own way, else routing.default; NULL: that of no entry. */
int conf_strategy(const struct conf *conf, const struct conf_model *model);
/* Does any target of the entry list a task? Does anything in the configuration speak of tasks? */
bool conf_has_tasks(const struct conf_model *model);
bool conf_speaks_of_tasks(const struct conf *conf);
/* Is the pattern the name of one model? */
bool conf_is_name(struct span pattern);
/* Is it named as a model of this channel, by a target or as such? What only a pattern matches is its client's word. */
bool conf_names(const struct conf *conf, const struct conf_channel *ch, struct span model);
/* Does any pattern match? No patterns match everything. */
bool conf_serves(const struct conf_strings *patterns, struct span model);

#endif
