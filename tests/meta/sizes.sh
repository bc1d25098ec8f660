#!/bin/sh
# Budgets: lines of at most 80 columns, files of at most 800 lines, functions of
# at most 60 (150 in kernels), and nothing left to do.
# usage: sizes.sh SOURCE_FOLDER
set -eu
cd "$1"

find src include tools -type f \( -name '*.[ch]' -o -name '*.def' \
  -o -name '*.inc' -o -name '*.proto' \) | LC_ALL=C sort |
  LC_ALL=C xargs awk '
    function bad(line, what) {
      printf "%s:%d: %s\n", FILENAME, line, what
      failed = 1
    }
    FNR == 1 { start = 0 }
    { columns = $0 }
    /\t/ { bad(FNR, "tab") }
    /[ \t]$/ { bad(FNR, "space at the end") }
    /TO[D]O|FIX[M]E/ { bad(FNR, "left to do") }
    { # A character of UTF-8 is one column: its later bytes do not count.
      gsub(/[\200-\277]/, "", columns)
      if (length(columns) > 80)
        bad(FNR, length(columns) " columns, at most 80")
    }
    FNR == 801 { bad(FNR, "more than 800 lines") }
    # A function starts at a line in column 1 with a parenthesis and ends with
    # a brace in column 1.
    /^[a-z][a-zA-Z0-9_ *]*[ *][a-z][a-zA-Z0-9_]*\(/ { start = FNR }
    /;$/ && start && !opened { start = 0 }
    /\{$/ { opened = 1 }
    /^}/ {
      most = FILENAME ~ /^src\/kernel\// ? 150 : 60
      if (start && FNR - start + 1 > most)
        bad(start, "function of " FNR - start + 1 " lines, at most " most)
      start = opened = 0
    }
    END { exit failed }'
