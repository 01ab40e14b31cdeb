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
# the loops of programs and what they do between requests; and of one request the files that wait, ask, keep or count time:
# all that these call is given the time, and says what went wrong by what it returns
loops='main|start|worker|master|crew|once|process|chores|errand|probe_run|balance|alert|alert_command|doctor'
request='serve|serve_aim|tokenizer|page|front|attempt|answer|recall|recall_page|ask|task_of|context|context_keep|context_note'
only "$f/($loops|$request).c|$f/ctl/[a-z_]*\.c|$f/base/clock.h" 'the clock is a parameter here' \
	'\<clock_(wall|mono)[[:space:]]*\('
loops='start|worker|master|crew|process|chores|probe_run|balance|alert|alert_command'
request='serve|front|attempt|record|tokenizer|keeping|context|context_keep|context_note'
only "$f/($loops|$request).c|$f/ctl/[a-z_]*\.c|$f/base/log.[ch]" 'libraries do not log' \
	'\<(log_fields|log_write|syslog)[[:space:]]*\('
only "$f/crew.c" 'only the master forks' '\<(fork|vfork|clone)[[:space:]]*\('
only "$f/base/regex.c" 'PCRE2 is for base/regex.c' '^#[[:space:]]*include[[:space:]]*<(pcre2|regex)'
exit $bad
