#include "ctl/models_run.h"

#include "base/clock.h"
#include "base/emit.h"
#include "conf/options.h"
#include "ctl/args.h"
#include "ctl/human.h"
#include "ctl/models_list.h"

#define OUTPUT_MAX (64u << 20)
#define NAME_MAX_BYTES 129

static bool
is_priced(const struct models_list_target *target)
{
	return target->row.cost_tokens > 0 || target->row.cost_micros > 0;
}

/* Mean time to the first content; 0 = unknown. */
static int64_t
first_ms(const struct target_sums *sums)
{
	return sums->first_n > 0 ? (int64_t)(sums->first_sum_ms / sums->first_n) : 0;
}

/* ---- JSON ---- */

static void
emit_tasks(struct emit *e, const struct conf_strings *tasks)
{
	emit_array(e, "tasks");
	for (size_t i = 0; tasks != NULL && i < tasks->n; i++)
		emit_text(e, NULL, tasks->at[i]);
	emit_end(e);
}

static void
emit_price(struct emit *e, const struct conf_cost *price)
{
	if (price == NULL) {
		emit_null(e, "price");
		return;
	}
	emit_object(e, "price");
	emit_real(e, "input", (double)price->input_micros / 1e6, 6);
	emit_real(e, "output", (double)price->output_micros / 1e6, 6);
	emit_real(e, "cached", (double)price->cached_micros / 1e6, 6);
	emit_end(e);
}

static void
emit_figures(struct emit *e, const struct models_list_target *target)
{
	const struct target_sums *sums = &target->sums;
	const struct target_row *row = &target->row;

	emit_i64(e, "calls", (int64_t)sums->calls);
	emit_i64(e, "failures", (int64_t)sums->failures);
	emit_real(
	    e, "success_rate", sums->calls > 0 ? target_success_ppm(sums) / 1e6 : EMIT_UNKNOWN, 4);
	emit_known(e, "first_ms", first_ms(sums), sums->first_n > 0);
	emit_real(e, "cost", is_priced(target) ? (double)row->cost_micros / 1e6 : EMIT_UNKNOWN, 6);
	emit_real(e, "ratio", row->ratio_ppm > 0 ? row->ratio_ppm / 1e6 : EMIT_UNKNOWN, 4);
	emit_known(e, "output_tokens", row->output_tokens, row->output_tokens > 0);
	emit_i64(e, "consecutive_failures", row->consecutive);
	emit_time(e, "rests_until", (struct wall_ms){target->rests ? row->rest_until_ms : 0});
}

static void
emit_target(struct emit *e, const struct conf *conf, const struct models_list_target *target)
{
	const struct conf_target *of_entry = target->conf;
	int64_t window = target->window, output = target->max_output;

	emit_object(e, NULL);
	emit_text(e, "channel", conf->channels[target->channel].name);
	emit_text(e, "model", target->model);
	emit_real(e, "weight", of_entry == NULL ? 1 : of_entry->weight, 4);
	emit_known(e, "context_window", window, window > 0);
	emit_known(e, "max_output", output, output > 0);
	emit_price(e, target->price);
	emit_tasks(e, of_entry == NULL ? NULL : &of_entry->tasks);
	emit_bool(e, "serves", target->serves);
	emit_z(e, "why", target->why);
	emit_time(e, "until", target->until);
	emit_figures(e, target);
	emit_end(e);
}

static void
put_json(struct buf *out, const struct conf *conf, const struct models_list *list)
{
	static const char *const sources[] = {[MODELS_LIST_TABLE] = "models",
	    [MODELS_LIST_CHANNEL] = "channel",
	    [MODELS_LIST_STORE] = "store"};
	struct emit e;

	emit_init(&e, out);
	emit_array(&e, NULL);
	for (size_t i = 0; i < list->n; i++) {
		const struct models_list_model *model = &list->models[i];
		const struct conf_model *entry = model->conf;

		emit_object(&e, NULL);
		emit_text(&e, "name", model->name);
		emit_z(&e, "from", sources[model->source]);
		emit_z(&e, "strategy", options_routings[conf_strategy(conf, entry)]);
		emit_some(&e, "realm", entry != NULL ? entry->realm : SPAN(""));
		emit_tasks(&e, entry == NULL ? NULL : &entry->tasks);
		emit_bool(&e, "serves", model->serves);
		emit_array(&e, "targets");
		for (size_t t = 0; t < model->ntargets; t++)
			emit_target(&e, conf, &model->targets[t]);
		emit_end(&e);
		emit_end(&e);
	}
	emit_end(&e);
	buf_char(out, '\n');
}

/* ---- for people ---- */

#define LINE "%-24s %-32s %6s %8s %7s %17s  %-20s %6s %5s %8s %10s %5s\n"

/* What one line says, each as text; "-" where nothing is known. */
struct line {
	char target[2 * NAME_MAX_BYTES], weight[24], window[24], output[24], price[48], now[48];
	char calls[24], rate[24], first[32], cost[48], ratio[24];
};

static void
say_number(char *dst, size_t cap, int64_t v)
{
	if (v > 0)
		snprintf(dst, cap, "%lld", (long long)v);
	else
		snprintf(dst, cap, "-");
}

static void
say_now(struct line *line, const struct models_list_target *target, struct wall_ms now)
{
	char left[HUMAN_TIME] = "";

	if (target->until.v > now.v)
		human_left(target->until.v - now.v, left);
	snprintf(line->now, sizeof line->now, "%s%s%s", target->serves ? "yes" : target->why,
	    left[0] == '\0' ? "" : " ", left);
}

static void
say_figures(struct line *line, const struct models_list_target *target)
{
	const struct target_sums *sums = &target->sums;

	snprintf(line->calls, sizeof line->calls, "%llu", (unsigned long long)sums->calls);
	snprintf(line->rate, sizeof line->rate, "-");
	snprintf(line->first, sizeof line->first, "-");
	snprintf(line->cost, sizeof line->cost, "-");
	snprintf(line->ratio, sizeof line->ratio, "-");
	if (sums->calls > 0)
		snprintf(line->rate, sizeof line->rate, "%u%%",
		    (unsigned)target_success_ppm(sums) / 10000);
	if (sums->first_n > 0)
		snprintf(line->first, sizeof line->first, "%lld ms", (long long)first_ms(sums));
	if (is_priced(target))
		snprintf(
		    line->cost, sizeof line->cost, "%.6f", (double)target->row.cost_micros / 1e6);
	if (target->row.ratio_ppm > 0)
		snprintf(line->ratio, sizeof line->ratio, "%.2f", target->row.ratio_ppm / 1e6);
}

static void
put_target(struct buf *out, const struct conf *conf, const char *name,
    const struct models_list_target *target, struct wall_ms now)
{
	const struct conf_target *of_entry = target->conf;
	const struct conf_cost *price = target->price;
	char model[NAME_MAX_BYTES];
	struct line line;

	text_clean(model, sizeof model, target->model);
	snprintf(line.target, sizeof line.target, "%s/%s", conf->channels[target->channel].name.p,
	    model);
	snprintf(line.weight, sizeof line.weight, "-");
	if (of_entry != NULL)
		snprintf(line.weight, sizeof line.weight, "%g", of_entry->weight);
	say_number(line.window, sizeof line.window, target->window);
	say_number(line.output, sizeof line.output, target->max_output);
	snprintf(line.price, sizeof line.price, "-");
	if (price != NULL)
		snprintf(line.price, sizeof line.price, "%g / %g",
		    (double)price->input_micros / 1e6, (double)price->output_micros / 1e6);
	say_now(&line, target, now);
	say_figures(&line, target);
	buf_print(out, LINE, name, line.target, line.weight, line.window, line.output, line.price,
	    line.now, line.calls, line.rate, line.first, line.cost, line.ratio);
}

static void
put_table(
    struct buf *out, const struct conf *conf, const struct models_list *list, struct wall_ms now)
{
	buf_print(out, LINE, "MODEL", "TARGET", "WEIGHT", "WINDOW", "OUTPUT", "IN / OUT PER 1,000",
	    "NOW", "CALLS", "OK", "FIRST", "COST", "RATIO");
	for (size_t i = 0; i < list->n; i++) {
		const struct models_list_model *model = &list->models[i];
		char name[NAME_MAX_BYTES];

		text_clean(name, sizeof name, model->name);
		for (size_t t = 0; t < model->ntargets; t++)
			put_target(out, conf, t == 0 ? name : "", &model->targets[t], now);
	}
}

int
models_run(struct ctl *ctl, int argc, char **argv)
{
	struct attach a;
	struct models_list_job job = {.attach = &a, .now = clock_wall()};
	struct buf out;
	int status = CTL_FAILED;

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	job.arena = arena_new(OUTPUT_MAX);
	buf_init(&out, OUTPUT_MAX);
	if (env_view(a.env, models_list_in, &job) != STORE_OK) {
		fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
	} else {
		if (ctl->json)
			put_json(&out, a.conf, &job.list);
		else
			put_table(&out, a.conf, &job.list, job.now);
		status = human_print(ctl, &out);
	}
	buf_release(&out);
	arena_free(&job.arena);
	attach_close(&a);
	return status;
}
