#!/bin/sh
# Includes go one way, in the order of tests/lint/layers; foo.c includes "foo.h" first.
cd "$(dirname "$0")/../.." || exit 2
files=$(find store fcgi_app -name '*.[ch]' | sort)
grep -Hn '^#include "' $files | awk -F'[:"]' '
	BEGIN {
		while ((getline line < "tests/lint/layers") > 0) {
			sub(/#.*/, "", line)
			m = split(line, word, " ")
			if (m > 0)
				rows++
			for (i = 1; i <= m; i++) {
				prefix[++n] = word[i]
				row[n] = rows
			}
		}
	}
	function rank(path, i) {
		for (i = 1; i <= n; i++)
			if (index(path, prefix[i]) == 1)
				return row[i]
		print $1 ":" $2 ": no row of tests/lint/layers fits " path
		bad = 1
		return 0
	}
	{
		to = $4 ~ /^store\// ? $4 : "fcgi_app/" $4
		a = rank($1)
		b = rank(to)
		if (a && b && b > a) { print $1 ":" $2 ": reaches up to " to; bad = 1 }
		if ($1 ~ /^store\// && to !~ /^store\//) { print $1 ":" $2 ": the store stands alone, not with " to; bad = 1 }
	}
	END { exit bad }' || bad=1
for c in $(find store fcgi_app -name '*.c' | sort); do
	own=${c%.c}.h
	[ ! -f "$own" ] || awk -v own="${own#fcgi_app/}" -v file="$c" '/^#include/ { bad = $2 != "\"" own "\""; exit }
		END { if (bad) print file ":" NR ": must include \"" own "\" first"; exit bad }' "$c" || bad=1
done
exit ${bad:-0}
