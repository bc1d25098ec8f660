#!/bin/sh
# File names are unique, so that a name alone tells which file is meant.
# usage: names.sh SOURCE_FOLDER
set -eu
cd "$1"
twice=$(find src tools tests -type f ! -name CMakeLists.txt ! -name README.md |
  sed 's|.*/||' | LC_ALL=C sort | uniq -d)
[ -n "$twice" ] || exit 0
for name in $twice; do
  echo "more than one file is called $name:"
  find src tools tests -type f -name "$name"
done
exit 1
