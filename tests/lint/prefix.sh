#!/bin/sh
# Every symbol that an object exports begins with its file's stem (its first word); main is free.
# More words for a stem: tests/lint/prefixes.
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build}
bad=0
objects=
for c in $(find store fcgi_app -name '*.c' | sort); do
	object=$build/${c%.c}.o
	if [ -f "$object" ]; then
		objects="$objects $object"
	else
		echo "$c:1: not built: no $object"
		bad=1
	fi
done
# each line: OBJECT:ADDRESS KIND SYMBOL
nm -A -g --defined-only $objects | awk -v build="$build/" '
	BEGIN {
		while ((getline line < "tests/lint/prefixes") > 0) {
			split(line, word, " ")
			words[word[1]] = substr(line, length(word[1]) + 1)
		}
	}
	$2 !~ /[TDBRC]/ || $3 == "main" { next }
	{
		file = substr($1, length(build) + 1)
		sub(/\.o:.*/, ".c", file)
		stem = file
		sub(/.*\//, "", stem)
		sub(/\.c$/, "", stem)
		first = stem
		sub(/_.*/, "", first)
		n = split(first " " words[stem], word, " ")
		for (i = 1; i <= n; i++)
			if (index($3, word[i] "_") == 1)
				next
		line = 1
		while ((getline text < file) > 0 && index(text, $3) == 0)
			line++
		close(file)
		print file ":" line ": exports " $3 ", wants " word[1] "_*"
		bad = 1
	}
	END { exit bad }' || bad=1
exit $bad
