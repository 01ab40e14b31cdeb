#!/bin/sh
# Install the Debian packages named on the command line that are missing; says what it does. Needs root only for that.
missing=
for p in "$@"; do
    case $p in
    # another build of the same tool will do
    nodejs) command -v node >/dev/null && continue ;;
    npm) command -v npm >/dev/null && continue ;;
    esac
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing"
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null; then
        sudo=sudo
    else
        echo "these packages are missing; as root, run: apt-get install$missing" >&2
        exit 1
    fi
fi
# a web server that a package starts by itself is not wanted here
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null && $sudo chmod 755 $policy
    trap '$sudo rm -f $policy' EXIT
fi
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
