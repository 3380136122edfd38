# blocks.sh - README's commands and programs, out of its text. To be sourced; in the folder of README.md.
# shellcheck shell=bash

# block PATTERN: README's first indented block that has a line with PATTERN.
block() {
        awk -v pattern="$1" '
                /^    / { text = text substr($0, 5) "\n"; if ($0 ~ pattern) found = 1; next }
                { if (found) exit; text = "" }
                END { if (found) printf "%s", text }' README.md
}

# training_loop: README's first C program, with one epoch instead of five.
training_loop() {
        awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md | sed 's/epoch <= 5/epoch <= 1/'
}

# static_line: README's command that links libgrad.a.
static_line() {
        awk -F '`' '/`cc train.c .*--static libgrad/ { print $2; exit }' README.md
}
