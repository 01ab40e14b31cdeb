#!/bin/sh
# A web space as hosts sell it, and the gateway in it by apache/README.md alone: the ```sh blocks of its section
# "Shared hosting" are run as they stand, as a user without rights, under the limits of such hosts. Then curl looks.
# In a mount namespace of its own (the user's home stands in /etc/passwd), so that nothing stays. Without root the user is
# you, by a user namespace.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${SLUICE_BUILD:-build}
fail() {
	printf 'shared-hosting: %s\n' "$*" >&2
	[ -z "${dir:-}" ] || tail -n 20 "$dir/error.log" >&2 2>/dev/null || :
	exit 1
}
apache=$(PATH=$PATH:/usr/sbin command -v apache2) || fail 'apache2 is not installed'
modules=/usr/lib/apache2/modules
for tool in curl python3 openssl pgrep prlimit setpriv unshare; do command -v $tool >/dev/null || fail "$tool is not installed"; done
cd "$root"
case $build in /*) ;; *) build=$root/$build ;; esac

# The same again, where mounts are ours alone.
if [ -z "${SHARED_HOSTING_INSIDE:-}" ]; then
	alone='unshare -m --propagation private'
	[ "$(id -u)" = 0 ] || alone="$alone -U --map-current-user --keep-caps"
	$alone true || fail 'this system does not let you have a namespace: run it as root'
	SHARED_HOSTING_INSIDE=yes exec $alone sh "$0" "$@"
fi

dir=$(mktemp -d /tmp/sluice-shared.XXXXXX)
provider='' web=''
clean() {
	trap - EXIT INT TERM
	[ -z "$web" ] || kill "$web" 2>/dev/null || :
	[ -z "$provider" ] || kill "$provider" 2>/dev/null || :
	wait 2>/dev/null || :
	rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' INT TERM
say() { printf '%s\n' "$*"; }
good() { printf '    ok: %s\n' "$*"; }

# The user. 25 processes, 512000 kB of addresses.

home=$dir/home/web17
mkdir -p "$home/public_html" "$dir/run"
as='setpriv --no-new-privs --inh-caps=-all --ambient-caps=-all' uid=$(id -u)
if [ "$uid" = 0 ]; then
	uid=$((62000 + $$ % 2000))
	as="setpriv --no-new-privs --reuid=$uid --regid=$uid --clear-groups"
fi
{
	awk -F: -v uid="$uid" '$3 != uid' /etc/passwd
	printf 'web17:x:%s:%s::%s:/bin/sh\n' "$uid" "$uid" "$home"
} >"$dir/passwd"
chmod 644 "$dir/passwd"
mount --bind "$dir/passwd" /etc/passwd
chmod 755 "$dir" "$dir/home"
[ "$(id -u)" != 0 ] || chown -R "$uid:$uid" "$dir"
user() { # COMMAND: in the home, with the environment of a login and the limits of the host
	(cd "$home" && exec $as prlimit --nproc=25 --as=524288000 env -i HOME="$home" PATH=/usr/bin:/bin "$@")
}

# The host: nothing in it knows of us.

port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
{
	for m in mpm_event authn_core authn_file authz_core authz_user auth_basic rewrite env setenvif alias mime filter deflate \
		headers dir cgid fcgid; do
		echo "LoadModule ${m}_module $modules/mod_$m.so"
	done
	cat <<-END
		ServerName localhost
		Listen 127.0.0.1:$port
		PidFile $dir/run/pid
		DefaultRuntimeDir $dir/run
		ScriptSock $dir/run/cgid
		FcgidIPCDir $dir/run
		FcgidProcessTableFile $dir/run/shm
		ErrorLog $dir/error.log
		StartServers 1
		ThreadsPerChild 8
		MaxRequestWorkers 8
		TypesConfig /dev/null
		AddOutputFilterByType DEFLATE text/html text/plain text/css application/json text/event-stream
		DocumentRoot $home/public_html
		<Directory />
			AllowOverride None
			Require all denied
		</Directory>
		<Directory $home/public_html>
			Options SymLinksIfOwnerMatch
			AllowOverride AuthConfig FileInfo Limit Options=ExecCGI,Indexes,MultiViews,SymLinksIfOwnerMatch
			Require all granted
		</Directory>
		RLimitNPROC 25 25
		RLimitMEM 524288000 524288000
	END
} >"$dir/apache.conf"
start_web() {
	$as env -i PATH=/usr/bin:/bin "$apache" -DFOREGROUND -f "$dir/apache.conf" 2>>"$dir/error.log" &
	web=$!
	n=0
	until curl -s -o /dev/null "http://127.0.0.1:$port/"; do
		n=$((n + 1))
		[ $n -lt 100 ] && kill -0 "$web" 2>/dev/null || fail 'Apache does not serve'
		sleep 0.1
	done
}
: >"$dir/error.log"
[ "$(id -u)" != 0 ] || chown "$uid" "$dir/error.log"
start_web
say "A web space of user $uid, served by Apache on port $port: 25 processes, 512000 kB"

mkfifo "$dir/port"
python3 examples/provider.py >"$dir/port" &
provider=$!
read -r upstream <"$dir/port"

# The README, block by block

awk '/^## /{ on = /^## Shared hosting/ } on && /^```sh$/{ file = sprintf("%s/block.%d", dir, ++n); text = 1; next }
	/^```$/{ text = 0 } on && text { print > file }' dir="$dir" apache/README.md
[ -f "$dir/block.5" ] && ! [ -f "$dir/block.6" ] || fail 'the README has other blocks than this script knows'
run() { # NUMBER: as the user, with what the block before has set
	say "README, block $1:"
	sed 's/^/    | /' "$dir/block.$1"
	{
		[ ! -f "$home/.token" ] || echo "token=$(cat "$home/.token")"
		sed "s,https://YOUR.SITE,http://127.0.0.1:$port," "$dir/block.$1"
		[ "$1" != 3 ] || echo 'echo "$token" >.token'
	} >"$dir/script"
	chmod 644 "$dir/script"
	user sh -eu "$dir/script" || fail "block $1 of the README fails"
}

say 'README, block 1, on the machine that builds: make portable'
grep -qx 'make setup && make portable' "$dir/block.1" || fail 'block 1 is another'
${MAKE:-make} -s B="$build" portable
cp "$build/portable/sluice.tgz" "$home/"
for library in $(ldd "$build/portable/sluice.fcgi" | awk '{ print $1 }'); do
	case $library in libfcgi* | liblmdb* | libjson-c*) fail "the program needs $library" ;; esac
done
run 2
grep -q sk-YOUR-KEY "$home/.config/sluice/sluice.json" || fail 'the README names no key'
say '(the key is put in: that of a provider on this machine)'
sed -i 's,sk-YOUR-KEY,key-alpha,; s,"provider": "openai",& \, "base_url": "http://127.0.0.1:'"$upstream"'/v1",' "$home/.config/sluice/sluice.json"
run 3
run 4 >"$dir/first" 2>&1 || { cat "$dir/first"; exit 1; }
grep '^README\|^  *|' "$dir/first"
grep -q '"service":"sluice","healthy":1' "$dir/first" || fail 'healthz does not answer'
grep -q 'authentication_error' "$dir/first" || fail 'strangers are not refused'
grep -q '^data: \[DONE\]' "$dir/first" || fail 'the streamed answer did not end'

# Is it so?

token=$(cat "$home/.token")
llm=http://127.0.0.1:$port/llm
body() { printf '{"model":"gpt-4o-mini","stream":%s,"messages":[{"role":"user","content":"Hi"}]}' "$1"; }
ask() { # STREAM [CURL OPTIONS]
	stream=$1
	shift
	curl -sS --max-time 30 -d "$(body "$stream")" "$@" "$llm/v1/chat/completions"
}
status_of() { ask "$@" -o /dev/null -w '%{http_code}'; }
calls() { user sluice/sluicectl status --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["channels"][0]["accounts"][0]["calls"])'; }
is() { [ "$2" = "$3" ] && good "$1: $2" || fail "$1: $2, not $3"; }
looks() {
	say "$1:"
	before=$(calls)
	is 'without a token' "$(status_of false)" 401
	is 'with a wrong token' "$(status_of false -H 'Authorization: Bearer sl-wrong')" 401
	is 'a stranger who claims to be alice' "$(status_of false -H 'Remote-User: alice')" 401
	is 'nothing of that reached the provider' "$(calls)" "$before"
	is 'with the token' "$(status_of false -H "Authorization: Bearer $token")" 200
	is 'with the token as X-Api-Key' "$(status_of false -H "X-Api-Key: $token")" 200
	is 'the state is kept' "$(calls)" $((before + 2))
	is 'the status page without a password' "$(curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "$llm/status")" 401
	for file in .htaccess sluice.json state/live/data.mdb; do
		case $(curl -sS -o /dev/null -w '%{http_code}' "$llm/$file") in 401 | 403 | 404) ;; *) fail "$file can be fetched" ;; esac
	done
	good 'no file can be fetched'
}
gaps() { # the longest silence and the number of pieces of a streamed answer
	ask true -N --compressed -H "Authorization: Bearer $token" | python3 -c '
import sys, time
at = []
for line in iter(sys.stdin.buffer.readline, b""):
    if line.startswith(b"data:"): at.append(time.monotonic())
steps = [b - a for a, b in zip(at, at[1:])]
print(sum(s > 0.04 for s in steps), len(at))'
}
looks 'Plain CGI'
say 'README, the status page:'
page=$(sed -n 's/^- The status page: `\(.*\)`, then$/\1/p' apache/README.md)
[ -n "$page" ] || fail 'the README has another way to the status page'
user sh -euc "$(printf '%s' "$page" | sed 's/-apr1/& admin-pw/')"
user chmod 644 .config/sluice/htpasswd
user sed -i 's/{/{ "auth": { "admins": ["admin"] },/;t' .config/sluice/sluice.json
status_page() { curl -sS -o /dev/null -w '%{http_code}' -u "$1" "$llm/status"; }
is 'the status page for admin' "$(status_page admin:admin-pw)" 200
is 'the status page with a wrong password' "$(status_page admin:wrong)" 401
read -r apart all <<END
$(gaps)
END
[ "$apart" -ge 15 ] || fail "of $all events only $apart came by themselves"
good "streams: $apart of $all events came one by one"

streams=''
for i in 1 2 3 4 5; do
	ask true -N -H "Authorization: Bearer $token" >"$dir/stream.$i" &
	streams="$streams $!"
done
# shellcheck disable=SC2086 # one word a process
wait $streams || fail 'a stream failed'
is 'five streams at once end whole' "$(cat "$dir"/stream.? | grep -c '^data: \[DONE\]')" 5

ask true -N -H "Authorization: Bearer $token" >"$dir/cut" 2>&1 &
cut=$!
sleep 0.7
program=$(pgrep -x -P "$(pgrep -d , -P "$web")" sluice.cgi) || fail 'no program to kill' # a child of Apache's cgid
kill -9 "$program"
wait $cut || :
is 'one killed in the middle: the next request' "$(status_of false -H "Authorization: Bearer $token")" 200
user sluice/sluicectl status --json | tr -d ' \n' | grep -q '"in_flight":0' || fail 'its place is still taken'
good 'and its place is free again'
ask true -N -H "Authorization: Bearer $token" >"$dir/graceful" &
streaming=$!
sleep 0.5
kill -USR1 "$web"
wait $streaming || :
is 'over a graceful restart of Apache a stream ends whole' "$(grep -c '^data: \[DONE\]' "$dir/graceful")" 1
n=0
until [ "$(status_of false -H "Authorization: Bearer $token")" = 200 ]; do
	n=$((n + 1))
	[ $n -lt 50 ] || fail 'it does not serve after a graceful restart'
	sleep 0.1
done
good 'and it serves after it'

run 5
looks 'mod_fcgid'
read -r apart all <<END
$(gaps)
END
good "$all events, of which $apart came by themselves: it does not stream, as the README says"
! grep '^sluice: ' "$dir/error.log" || fail 'the program complained'
say 'A web space works by the README alone.'
