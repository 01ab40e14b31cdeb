#!/bin/sh
# What only a few files may do. Each line: who may (a pattern of paths), and the expression that nobody else may write.
cd "$(dirname "$0")/../.." || exit 2
files=$(find store fcgi_app -name '*.[ch]' | sort)
bad=0
only() {
	may=$1 why=$2 expression=$3
	grep -HnE -e "$expression" -- $files | grep -vE "^(${may}):" | sed "s|^\([^:]*:[0-9]*\):|\1: $why: |" |
		grep . && bad=1
}
f=fcgi_app
only "$f/upstream.c|$f/redact.c|$f/base/secret.h" 'keys are read elsewhere' '^[^/*]*\<secret_reveal[[:space:]]*\('
only "$f/base/json.c" 'json-c is for base/json.c' '^#[[:space:]]*include[[:space:]]*<json'
only 'store/[a-z_]*\.[ch]' 'LMDB is for the store' '^#[[:space:]]*include[[:space:]]*<lmdb|\<mdb_[a-z]'
only "$f/upstream.c|$f/main.c|$f/ctl/doctor_call.c" 'libcurl is for upstream.c' '^#[[:space:]]*include[[:space:]]*<curl|\<curl_[a-z_]+[[:space:]]*\('
only "$f/main.c" 'only the global start of libcurl' 'curl_global_(init|cleanup)'
only "$f/base/clock.h|store/gate.c" 'the clock is a parameter here' '\<(clock_gettime|gettimeofday|time|ftime)[[:space:]]*\('
only "$f/(main|start|worker|master|crew|once|process|serve|serve_aim|page|front|attempt|answer|recall|recall_page|ask|task_of|tokenizer|context|context_keep|context_note|chores|errand|probe_run|balance|alert|doctor).c|$f/alert_command.c|$f/ctl/[a-z_]*\.c|$f/base/clock.h" 'the clock is a parameter here' \
	'\<clock_(wall|mono)[[:space:]]*\('
only "$f/(main|start|worker|master|crew|once|process|serve|serve_aim|page|front|attempt|answer|recall|recall_store|ask|task_of|tokenizer|keeping|context|context_keep|context_note|chores|probe_run|balance|alert|record).c|$f/alert_command.c|$f/ctl/[a-z_]*\.c|$f/base/log.[ch]" 'libraries do not log' \
	'\<(log_fields|log_write|syslog)[[:space:]]*\('
only "$f/crew.c" 'only the master forks' '\<(fork|vfork|clone)[[:space:]]*\('
only "$f/base/regex.c" 'PCRE2 is for base/regex.c' '^#[[:space:]]*include[[:space:]]*<(pcre2|regex)'
exit $bad
