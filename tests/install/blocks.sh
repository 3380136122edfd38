# blocks.sh - commands and programs of README.md and doc/install.md, out of their text. To be sourced, in the folder of README.md.
# shellcheck shell=bash

# block PATTERN: the first indented block that has a line with PATTERN.
block() {
        awk -v pattern="$1" '
                /^    / { text = text substr($0, 5) "\n"; if ($0 ~ pattern) found = 1; next }
                { if (found) exit; text = "" }
                END { if (found) printf "%s", text }' README.md doc/install.md
}

# training_loop: README's C program, with one epoch instead of five.
training_loop() {
        awk '/^#include <grad.h>$/ { on = 1 } /^```$/ { if (on) exit } on' README.md | sed 's/epoch <= 5/epoch <= 1/'
}

# static_line: the command that links libgrad.a.
static_line() {
        awk -F '`' '/`cc train.c .*--static libgrad/ { print $2; exit }' doc/install.md
}
