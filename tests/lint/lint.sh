#!/bin/sh
# Every house rule that a script can check: `sh tests/lint/lint.sh BUILD_DIR`. Each prints file:line and what is wrong.
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build}
bad=0
run() {
	printf '  LINT  %s\n' "$1"
	shift
	"$@" || bad=1
}
run layers sh tests/lint/layers.sh
run prefix sh tests/lint/prefix.sh "$build"
run size sh tests/lint/size.sh
run words sh tests/lint/words.sh
run secrets sh tests/lint/secrets.sh
run options sh tests/lint/options.sh "$build"
run docs sh tests/lint/docs.sh "$build"
[ $bad = 0 ] || echo 'lint: see above' >&2
exit $bad
