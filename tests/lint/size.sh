#!/bin/sh
# What is read at once stays small: a file has at most 500 lines, a function 60, and 12 ways through it (pmccabe, where a
# switch counts once). Files of tests, which hold tables of cases, may have 600.
cd "$(dirname "$0")/../.." || exit 2
command -v pmccabe >/dev/null || { echo 'size: needs pmccabe' >&2; exit 2; }
bad=0
for f in $(find store fcgi_app tests \( -name '*.[ch]' -o -name '*.py' \) ! -path '*/node_modules/*' | sort); do
	case $f in tests/*) most=600 ;; *) most=500 ;; esac
	n=$(wc -l <"$f")
	[ "$n" -le $most ] || { echo "$f:$n: a file of $n lines, at most $most"; bad=1; }
done
# columns: ways, ways with every case, statements, first line, lines, file(line): name
find store fcgi_app -name '*.c' | sort | xargs pmccabe | awk '
	{ file = $6; sub(/\(.*/, "", file) }
	$1 > 12 { print file ":" $4 ": " $NF "() has " $1 " ways through it, at most 12"; bad = 1 }
	$5 > 60 { print file ":" $4 ": " $NF "() has " $5 " lines, at most 60"; bad = 1 }
	END { exit bad }' || bad=1
exit $bad
