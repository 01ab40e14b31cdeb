#!/bin/sh
# sluice.json(5) and the table of settings say the same: each option has ".It Cm PATH", and the line after it its default.
cd "$(dirname "$0")/../.." || exit 2
ctl=${1:-build}/sluicectl
[ -x "$ctl" ] || { echo "options: needs $ctl" >&2; exit 2; }
"$ctl" options --json | sed 's/},{"path"/}\n{"path"/g' | awk -v page=man/sluice.json.5 '
	BEGIN {
		while ((getline line < page) > 0) {
			n++
			if (name != "")
				says[name] = line
			name = ""
			if (line ~ /^\.It Cm /) {
				name = substr(line, 8)
				if (name in at) { print page ":" n ": " name " stands here twice"; bad = 1 }
				at[name] = n
			}
		}
	}
	{
		match($0, /"path":"[^"]*"/)
		path = substr($0, RSTART + 8, RLENGTH - 9)
		known[path] = 1
		want = ""
		if (match($0, /"default":.*/)) {
			want = substr($0, RSTART + 10)
			sub(/,"(min|max|choices|channel)":.*/, "", want)
			gsub(/","/, "\", \"", want)
			want = "default " want
		}
		if (!(path in at)) { print page ":1: no \".It Cm " path "\""; bad = 1 }
		else if (index(says[path] ",", want ",") + index(says[path], want ".") == 0) {
			print page ":" at[path] + 1 ": the line after " path " must say: " want
			bad = 1
		}
	}
	END {
		for (name in at) if (!(name in known)) { print page ":" at[name] ": there is no option " name; bad = 1 }
		exit bad
	}'
