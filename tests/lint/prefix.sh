#!/bin/sh
# Every symbol that an object exports begins with its file's stem (its first word); main is free.
# More words for a stem: tests/lint/prefixes.
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build}
bad=0
for c in $(find store fcgi_app -name '*.c' | sort); do
	object=$build/${c%.c}.o
	[ -f "$object" ] || { echo "$c:1: not built: no $object"; bad=1; continue; }
	stem=$(basename "$c" .c)
	words="${stem%%_*} $(awk -v s="$stem" '$1 == s { $1 = ""; print }' tests/lint/prefixes)"
	nm -g --defined-only "$object" | awk '$2 ~ /[TDBRC]/ && $3 != "main" { print $3 }' |
		awk -v file="$c" -v words="$words" '
			BEGIN { n = split(words, word, " ") }
			{
				ok = 0
				for (i = 1; i <= n; i++)
					ok = ok || index($0, word[i] "_") == 1
				if (ok)
					next
				line = 1
				while ((getline text < file) > 0 && index(text, $0) == 0)
					line++
				close(file)
				print file ":" line ": exports " $0 ", wants " word[1] "_*"
				bad = 1
			}
			END { exit bad }' || bad=1
done
exit $bad
