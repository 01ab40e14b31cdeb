#include "dialect/openai.h"

#define TOKENS_MAX (INT64_C(1) << 40) /* beyond it a figure is nonsense, and sums could overflow */
#define MANTISSA_MAX (INT64_C(1) << 53) /* digits after these no longer matter */
#define MICROS_DIGITS 6

enum {
	PROMPT,
	INPUT,
	COMPLETION,
	OUTPUT,
	TOTAL,
	CACHED,
	CACHED_DEEPSEEK,
	CACHED_FLAT,
	CACHED_READ,
	WRITE,
	WRITE_DASHSCOPE,
	WRITE_FLAT,
	REASONING,
	REASONING_FLAT,
	CREDIT,
	USAGE__MAX
};

static const char *const paths[USAGE__MAX] = {
    [PROMPT] = "prompt_tokens",
    [INPUT] = "input_tokens",
    [COMPLETION] = "completion_tokens",
    [OUTPUT] = "output_tokens",
    [TOTAL] = "total_tokens",
    [CACHED] = "prompt_tokens_details.cached_tokens",
    [CACHED_DEEPSEEK] = "prompt_cache_hit_tokens",
    [CACHED_FLAT] = "cached_tokens",
    [CACHED_READ] = "cache_read_input_tokens",
    [WRITE] = "prompt_tokens_details.cache_write_tokens",
    [WRITE_DASHSCOPE] = "prompt_tokens_details.cache_creation_input_tokens",
    [WRITE_FLAT] = "cache_creation_input_tokens",
    [REASONING] = "completion_tokens_details.reasoning_tokens",
    [REASONING_FLAT] = "reasoning_tokens",
    [CREDIT] = "credit",
};

/* Takes the first of values[first..last] that is a figure. */
static bool
read_first(const struct scan_value *values, size_t first, size_t last, int64_t *out)
{
	for (size_t i = first; i <= last; i++)
		if (scan_i64(&values[i], 0, TOKENS_MAX, out))
			return true;
	return false;
}

void
openai_usage(const struct scan_value *object, struct dialect_usage *usage)
{
	static struct scan_plan *plan;
	struct scan_value v[USAGE__MAX];
	bool seen;

	if (object->type != SCAN_OBJECT)
		return;
	if (plan == NULL) {
		plan = scan_plan_new(paths, USAGE__MAX);
		scan_plan_lax(plan);
	}
	if (scan_run(plan, object->raw, v, NULL) != ERR_OK)
		return; /* was part of a document that could be read */
	seen = read_first(v, PROMPT, INPUT, &usage->prompt);
	seen |= read_first(v, COMPLETION, OUTPUT, &usage->completion);
	seen |= read_first(v, TOTAL, TOTAL, &usage->total);
	read_first(v, CACHED, CACHED_READ, &usage->cached);
	read_first(v, WRITE, WRITE_FLAT, &usage->cache_write);
	read_first(v, REASONING, REASONING_FLAT, &usage->reasoning);
	usage->seen |= seen;
	usage->has_credit |= openai_micros(&v[CREDIT], &usage->credit_micros);
}

struct decimal {
	int64_t mantissa;
	int64_t places; /* digits of it behind the point */
};

/* Digits, perhaps a point, perhaps an exponent. */
static bool
read_decimal(struct span s, struct decimal *out)
{
	bool point = false, digit = false;

	*out = (struct decimal){0};
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c >= '0' && c <= '9') {
			digit = true;
			if (out->mantissa >= MANTISSA_MAX / 10) {
				out->places -= !point;
				continue;
			}
			out->mantissa = out->mantissa * 10 + (c - '0');
			out->places += point;
		} else if (c == '.' && !point) {
			point = true;
		} else if (c == 'e' || c == 'E') {
			struct span rest = text_from(s, i + 1);
			int64_t power;

			if (!text_i64(text_from(rest, text_starts(rest, "+")), -1000, 1000, &power))
				return false;
			out->places -= power;
			break;
		} else {
			return false;
		}
	}
	return digit;
}

bool
openai_micros(const struct scan_value *value, int64_t *micros_out)
{
	struct span s = value->raw;
	struct decimal d;

	if (value->type == SCAN_STRING)
		s = (struct span){s.p + 1, s.n - 2};
	else if (value->type != SCAN_NUMBER)
		return false;
	if (!read_decimal(s, &d))
		return false;
	for (; d.places > MICROS_DIGITS + 1 && d.mantissa > 0; d.places--)
		d.mantissa /= 10;
	if (d.places > MICROS_DIGITS)
		d.mantissa = (d.mantissa + 5) / 10;
	for (; d.places < MICROS_DIGITS && d.mantissa > 0; d.places++)
		if (d.mantissa > MANTISSA_MAX)
			return false;
		else
			d.mantissa *= 10;
	if (d.mantissa > MANTISSA_MAX)
		return false;
	*micros_out = d.mantissa;
	return true;
}
