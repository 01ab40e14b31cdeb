#include "explain_way.h"

#include "conf/options.h"

static const char *
pass_name(enum plan_pass pass)
{
	static const char *const names[] = {
	    [PLAN_GOES] = NULL,
	    [PLAN_OPEN] = "its breaker is open",
	    [PLAN_SPENT] = "its breaker is half-open, and all probes are sent",
	    [PLAN_REPEATED] = "stands in the list before",
	    [PLAN_TARGET] = "is a target itself",
	    [PLAN_OTHER_WIRE] = "speaks another wire format",
	    [PLAN_NO_MODEL] = "does not serve the model",
	};

	return names[pass];
}

static void
put_facts(struct emit *e, const struct elect_candidate *c, const struct walk_fact *fact)
{
	emit_z(e, "state", fact->rest_until_ms != 0 ? "rests" : c->trial ? "trial" : "open");
	emit_time(e, "until", (struct wall_ms){fact->rest_until_ms});
	emit_i64(e, "calls", (int64_t)c->calls);
	emit_real(e, "success_rate", (double)c->success_ppm / ELECT_RATE_ONE, 4);
	emit_known(e, "first_ms", c->first_ms, c->first_ms > 0);
	emit_known(e, "prompt_tokens", fact->prompt, fact->prompt >= 0);
	emit_i64(e, "output_tokens", fact->output);
	emit_real(e, "cost", c->priced ? (double)c->cost / ELECT_COST_ONE : EMIT_UNKNOWN, 9);
}

static void
put_target(struct emit *e, const struct walk *w, size_t i, double share)
{
	const struct route *route = &w->plan.targets[i];
	const struct conf_channel *channel = &w->plan.conf->channels[route->channel];
	const struct elect_candidate *c = &w->candidates[i];
	int64_t window = route->target == NULL ? 0 : route->target->context_window;

	emit_object(e, NULL);
	emit_text(e, "channel", channel->name);
	emit_text(e, "model", route->model);
	emit_z(e, "wire", options_wires[channel->wire]);
	emit_z(e, "out", elect_out_text(c->out));
	emit_real(e, "share", share, 4);
	emit_real(e, "weight", c->weight, 4);
	emit_bool(e, "lists_task", c->lists_task);
	emit_known(e, "context_window", window, window > 0);
	put_facts(e, c, &w->facts[i]);
	emit_end(e);
}

void
explain_way_targets(
    struct emit *e, const struct walk *w, const struct elect_rule *rule, struct span task)
{
	emit_some(e, "task", task);
	emit_z(e, "routing", w->candidates == NULL ? NULL : options_routings[rule->strategy]);
	emit_array(e, "targets");
	for (size_t i = 0; w->candidates != NULL && i < w->plan.ntargets; i++)
		put_target(e, w, i, elect_share(w->candidates, w->plan.ntargets, rule, i));
	emit_end(e);
}

void
explain_way_chain(struct emit *e, const struct walk *w)
{
	const struct plan *plan = &w->plan;
	size_t steps = plan->conf->channels[plan->first.channel].nfallback + 1;

	emit_object(e, "route");
	emit_text(e, "channel", plan->conf->channels[plan->first.channel].name);
	emit_text(e, "model", plan->first.model);
	emit_bool(e, "entry", plan->first.entry != NULL);
	emit_end(e);
	emit_array(e, "chain");
	for (size_t step = 1; step <= steps; step++) {
		struct route route;
		enum plan_pass pass = plan_step(plan, w->answers, step, &route);

		emit_object(e, NULL);
		emit_text(e, "channel", plan->conf->channels[route.channel].name);
		emit_z(e, "wire", options_wires[plan->conf->channels[route.channel].wire]);
		emit_some(e, "model", pass == PLAN_GOES ? route.model : SPAN(""));
		emit_z(e, "passed_over", pass_name(pass));
		emit_end(e);
	}
	emit_end(e);
}
