#!/bin/sh
# The gateway at work, in under half a minute: lighttpd on a free loopback port, with lighttpd/spawn.conf as shipped.
# The provider is a script with three accounts; with OPENAI_API_KEY set it is OpenAI. Leaves nothing behind.
set -eu
cd "$(dirname "$0")/.."
build=${SLUICE_BUILD:-build}
fail() {
	echo "demo: $*" >&2
	exit 1
}
if ! [ -x "$build/sluice.fcgi" ] || ! [ -x "$build/sluicectl" ]; then fail 'run make first'; fi
lighttpd=$(PATH=$PATH:/usr/sbin command -v lighttpd) || fail 'lighttpd is not installed'
for tool in curl python3 pgrep setpriv; do command -v $tool >/dev/null || fail "$tool is not installed"; done

dir=$(mktemp -d /tmp/sluice-demo.XXXXXX)
provider='' web=''
clean() {
	trap - EXIT INT TERM
	gate=$([ -z "$web" ] || pgrep -P "$web" || :)
	[ -z "$web" ] || kill "$web" 2>/dev/null || :
	[ -z "$provider" ] || kill "$provider" 2>/dev/null || :
	wait 2>/dev/null || :
	# the gateway ends after its server, and writes into its state until then
	n=0
	while [ -n "$gate" ] && [ $n -lt 50 ] && ps -p "$gate" >/dev/null; do
		n=$((n + 1))
		sleep 0.1
	done
	rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' INT TERM

bold='' plain=''
[ ! -t 1 ] || { bold=$(printf '\033[1m') plain=$(printf '\033[0m'); }
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
note() { printf '    %s\n' "$*"; }

# As root, everything that serves runs as an ordinary user.
as=''
if [ "$(id -u)" = 0 ]; then
	user=$(id -un www-data 2>/dev/null || echo nobody)
	as="setpriv --reuid=$user --regid=$(id -gn "$user") --clear-groups"
fi

# The provider

if [ -n "${OPENAI_API_KEY:-}" ]; then
	model=gpt-4o-mini
	# shellcheck disable=SC2016 # the gateway replaces it, not the shell
	channel='"openai": { "provider": "openai", "accounts": [
		{ "id": "mine", "api_key": "${OPENAI_API_KEY}", "max_in_flight": 8 } ] }'
else
	model=demo-1
	mkfifo "$dir/port"
	python3 examples/provider.py >"$dir/port" &
	provider=$!
	read -r port <"$dir/port"
	channel='"demo": { "provider": "openai-compatible", "base_url": "http://127.0.0.1:'$port'/v1", "accounts": [
		{ "id": "alpha", "api_key": "key-alpha" }, { "id": "beta", "api_key": "key-beta" },
		{ "id": "gamma", "api_key": "key-gamma" } ] }'
fi

# The site: what an administrator would write

port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir "$dir/htdocs" "$dir/bin"
cp "$build/sluice.fcgi" "$build/sluicectl" "$dir/bin"
cp -r lighttpd "$dir"
cat >"$dir/sluice.json" <<-END
	{ "auth": { "admins": ["admin"] }, "channels": { $channel } }
END
chmod 600 "$dir/sluice.json"
: >"$dir/htpasswd"
cat >"$dir/tokens.conf" <<-END
	\$REQUEST_HEADER["Authorization"] == "Bearer sl-demo-token" {
		auth.require = ( )
		setenv.set-environment = ( "REMOTE_USER" => "demo" )
	}
END
cat >"$dir/site.conf" <<-END
	server.bind = "127.0.0.1"
	server.port = $port
	server.document-root = "$dir/htdocs"
	server.errorlog = "$dir/web.log"
	server.upload-dirs = ( "$dir" )
	var.sluice_dir = "$dir/lighttpd"
	var.sluice_bin = "$dir/bin/sluice.fcgi"
	var.sluice_config = "$dir/sluice.json"
	var.sluice_workers = "4"
	var.sluice_socket = "$dir/sock"
	var.sluice_users = "$dir/htpasswd"
	var.sluice_tokens = "$dir/tokens.conf"
	include "$dir/lighttpd/spawn.conf"
END
[ -z "$as" ] || chown -R "$user" "$dir"

cd "$dir"
say "lighttpd starts with lighttpd/spawn.conf, and the gateway with it: http://127.0.0.1:$port/llm/v1"
$as "$lighttpd" -D -f "$dir/site.conf" 2>"$dir/web.err" &
web=$!
url=http://127.0.0.1:$port/llm
n=0
until curl -sf -o /dev/null "$url/healthz"; do
	n=$((n + 1))
	if [ $n = 100 ] || ! kill -0 "$web" 2>/dev/null; then
		cat web.err web.log >&2
		fail 'lighttpd does not serve'
	fi
	sleep 0.1
done
ctl() { $as "$dir/bin/sluicectl" -c "$dir/sluice.json" "$@"; }
in_flight() { ctl status --json | tr -d ' \n' | sed 's/.*"totals":{\([^}]*\)}.*/\1/; s/.*"in_flight":\([0-9]*\).*/\1/'; }
ask() { # STREAM [CURL OPTIONS]: one chat request
	body='{"model":"'$model'","stream":'$1',"messages":[{"role":"user","content":"Explain in 30 words what a gateway does."}]}'
	shift
	curl -sSN --max-time 20 -H 'Authorization: Bearer sl-demo-token' -H 'Content-Type: application/json' -d "$body" "$@" \
		"$url/v1/chat/completions"
}

say '1. A streamed answer, token by token'
printf '    '
ask true | tee "$dir/answer" | sed -un 's/^data: .*"content":"\([^"]*\)".*/\1/p' | while IFS= read -r word; do printf '%s' "$word"; done
echo
grep -q '^data: \[DONE\]' "$dir/answer" || fail "the provider does not answer: $(cat "$dir/answer")"

if [ -n "$provider" ]; then
	say '2. Account beta is rate-limited by its provider: it is asked once, then left alone'
	printf '    served by:'
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		ask false -o /dev/null -D "$dir/head"
		tr -d '\r' <"$dir/head" | awk -F': ' 'tolower($1) == "x-sluice-account" { a = $2 } tolower($1) == "x-sluice-attempts" { n = $2 }
			END { printf " %s%s", a, (n > 1 ? "(second try)" : "") }'
		sleep 0.1
	done
	echo
	note "asked in all: $(ctl status --json | python3 -c 'import json, sys
for a in json.load(sys.stdin)["channels"][0]["accounts"]: print(a["id"], a["calls"], end="  ")')"
fi

say '3. Four streams keep all four workers busy; one worker is killed, and only its own stream is cut'
streams=''
for i in 1 2 3 4; do
	ask true >"$dir/stream.$i" 2>/dev/null &
	streams="$streams $!"
done
n=0
until [ "$(in_flight)" = 4 ] || [ $n = 20 ]; do n=$((n + 1)); sleep 0.05; done
note "in flight: $(in_flight)"
worker=$(pgrep -P "$(pgrep -P "$web" | head -n 1)" | head -n 1)
kill -9 "$worker"
note "kill -9 $worker; in flight a moment later: $(sleep 0.1; in_flight)"
note "a new request: HTTP $(ask false -o /dev/null -w '%{http_code} in %{time_total} s')"
# shellcheck disable=SC2086 # one word a process
wait $streams || :
note "of the four streams $(cat "$dir"/stream.* | grep -c '^data: \[DONE\]') ended whole; in flight now: $(in_flight)"

say 'What the pool remembers: sluicectl status'
ctl status

say 'With real keys'
cat <<END
    OPENAI_API_KEY=sk-... make demo        # the same against OpenAI

    A site needs one file, mode 0600, outside of its document root:
        { "channels": { "openai": { "provider": "openai", "accounts": [ { "id": "a1", "api_key": "\${OPENAI_API_KEY}" } ] } } }
    and one of lighttpd/ or apache/; their README.md says how.
END
