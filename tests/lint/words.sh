#!/bin/sh
# Words that must not stand in the tree, and spelling. Only text of ours: no test data, nothing built.
cd "$(dirname "$0")/../.." || exit 2
bad=0
files=$(find . -type d \( -name '.git' -o -name 'build*' -o -name node_modules -o -name __pycache__ -o -path ./tests/data \
	-o -path ./tests/fuzz/corpus -o -path ./tests/conf \) -prune -o -type f ! -name .git ! -path ./tests/lint/words.sh -print | sort)
c_files=$(find store fcgi_app tests -name '*.[ch]' | sort)
# EXPRESSION WHY FILE...: each line that matches, as file:line: why: text
ban() {
	expression=$1 why=$2
	shift 2
	grep -HnE -e "$expression" -- "$@" | sed "s/^\(\.\/\)\{0,1\}\([^:]*:[0-9]*\):/\2: $why: /" | grep . && bad=1
}
ban '\b(TODO|XXX|FIXME)\b' 'finish it or drop it' $files
ban '[[:blank:]]+$' 'blanks at the end of the line' $files
ban '(^|[^[:alnum:]_.])/(work|tmp/wt|root|home)/' 'a path of one machine' $files
ban '(curl|wget|git clone)[^|;]* https?://[a-z0-9.-]*\.[a-z]{2,}/.*\.(tgz|tar|gz|zip|deb|git)\b' 'an address to download from' $files
ban '(githubusercontent|registry\.npmjs|pypi\.(org|io)|pythonhosted|deb\.debian)' 'an address to download from' $files
ban '^ +(	|(if|for|while|do|return|switch|case|else|break|continue|goto)\b|\}$)' 'spaces for indentation' $c_files
ban '\b(strcpy|strcat|v?sprintf|strtok|atoi|atol|gets|localtime|asctime|ctime)[[:space:]]*\(' 'a banned function' $c_files
ban '\b(setenv|putenv|unsetenv)[[:space:]]*\(' 'a banned function' $(find store fcgi_app -name '*.[ch]')
command -v codespell >/dev/null || { echo 'words: needs codespell' >&2; exit 2; }
codespell --ignore-words-list=te,nd,hel,disabl,chanels $files || bad=1
exit $bad
