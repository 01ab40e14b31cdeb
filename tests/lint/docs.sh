#!/bin/sh
# The documents keep up with the program: commands, verdicts, counters, examples, folders, version; and are well-formed.
cd "$(dirname "$0")/../.." || exit 2
ctl=$(cd "${1:-build}" && pwd)/sluicectl
[ -x "$ctl" ] || { echo "docs: needs $ctl" >&2; exit 2; }
bad=0
wrong() { echo "$1"; bad=1; }
told() { # WORD FILE...: does it stand there as a word of its own?
	word=$1
	shift
	grep -qE -e "(^|[^[:alnum:]_.-])$word([^[:alnum:]_-]|\$)" -- "$@"
}
for word in $("$ctl" --help | awk '/^  / { print $1 }'); do
	told "$word" man/sluicectl.8 || wrong "man/sluicectl.8:1: the command '$word' is missing"
done
for word in $(sed -n 's/.*\[VERDICT_[A-Z_]*\] = {\.name = "\([a-z_]*\)".*/\1/p' fcgi_app/verdict.c) \
	$(sed -n 's/.*\[TALLY_[A-Z_]*\] = {"\([a-z_]*\)".*/\1/p' store/tally.c); do
	told "$word" man/sluice.8 || wrong "man/sluice.8:1: the verdict or counter '$word' is missing"
done
for folder in */; do
	case $folder in build*) continue ;; esac
	grep -qF "\`$folder\`" README.md || wrong "README.md:1: the folder \`$folder\` is missing"
done
version=$(sed -n 's/^VERSION := //p' Makefile)
newest=$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGES.md | head -n 1)
[ "$version" = "$newest" ] || wrong "CHANGES.md:1: the newest version is '$newest', the Makefile's is '$version'"
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
for file in examples/*.json; do
	case $file in
	*/models.json) (umask 077 && echo "{ \"models_file\": \"$PWD/$file\" }" >"$dir/sluice.json") ;;
	*) (umask 077 && cp "$file" "$dir/sluice.json") && chmod 600 "$dir/sluice.json" ;;
	esac
	env $(grep -o '\${[A-Z][A-Z0-9_]*}' "$file" | tr -d '${}' | sed 's/$/=placeholder/') \
		"$ctl" check "$dir/sluice.json" >"$dir/out" 2>&1 || wrong "$file:1: $(cat "$dir/out")"
done
"$ctl" options --example | cmp -s - examples/full.json || wrong 'examples/full.json:1: differs from sluicectl options --example'
mandoc -Tlint -Wwarning man/* || bad=1
exit $bad
