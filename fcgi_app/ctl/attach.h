/*
 * attach - what most commands begin with: the configuration and the store it names.
 *
 * Run as root it acts as the owner of state_dir, and creates nothing: files of root would lock the workers out.
 */
#ifndef CTL_ATTACH_H
#define CTL_ATTACH_H

#include "ctl/ctl_command.h"
#include "pool.h"
#include "status.h"

struct attach {
	struct conf *conf;
	struct env *env;
	struct slot *slot; /* holds no number, only looks */
	struct pool *pool;
};

/* False: the reason was printed to ctl->err. */
/* `enrol`: accounts that no worker has seen yet get their rows, for commands that write them. */
bool attach_open(struct ctl *ctl, struct attach *a, bool enrol);
void attach_close(struct attach *a);
/*
 * The steps of attach_open(), for who wants to know which one fails: the configuration into an `a` that is empty; as
 * root, to become the owner of its state_dir; the store. attach_leave() closes the store alone.
 */
bool attach_conf(struct ctl *ctl, struct attach *a);
bool attach_owner(struct ctl *ctl, const struct conf *conf);
bool attach_store(struct ctl *ctl, struct attach *a, bool enrol);
void attach_leave(struct attach *a);
/* What an operator did outlives a power cut: of these accounts (there may be none), and of channels. Says so when not. */
void attach_save(struct ctl *ctl, const struct attach *a, const struct account_ref *refs, size_t n);
/* What status.h wants. */
struct status_frame attach_frame(const struct attach *a, struct wall_ms now);

/*
 * The account that a person means: "channel/id", or a bare id if only one channel has it. False: printed why, with the
 * nearest id.
 */
bool attach_find(struct ctl *ctl, const struct attach *a, const char *name, size_t *channel_out,
    size_t *account_out);

/* A channel by its name; likewise. */
bool attach_find_channel(
    struct ctl *ctl, const struct attach *a, const char *name, size_t *channel_out);
/* Whose row is it? False: no account of that number is configured (any more). */
bool attach_whose(
    const struct attach *a, struct account_ref ref, size_t *channel_out, size_t *account_out);

#endif
