#!/usr/bin/env python3
"""Wrong uses of the public macros do not compile silently, and right ones compile clean.

check.py SOURCE_ROOT INCLUDE_ARGUMENTS

With every compiler that is here, as C and as C++:
- correct.c, the examples of the public headers, in both of which every macro is used, the examples without options by
  name, and all the right forms of mistakes.txt draw no warning in any standard;
- each mistake of mistakes.txt, without any -W flag, draws an error or a warning of its own; where it is listed as
  silent, or as fine, the compiler is silent;
- a file of 200 statements of calls nested ten deep compiles in reasonable time.
"""
import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PAIRS = os.environ.get("LG_TEST_COMPILERS", "gcc-11 g++-11,gcc g++,clang clang++,clang-19 clang++-19").split(",")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wmissing-field-initializers", "-Wshadow"]
NESTED_LIMIT = 10  # seconds
TOGETHER = 32  # mistakes

root, include = sys.argv[1], sys.argv[2].split()
here = os.path.join(root, "tests", "mistakes")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "tests", "header"))
import examples  # noqa: E402
failures = []


class Compiler:
    def __init__(self, program, language):
        self.program, self.language = program, language
        self.name = program + " " + language
        self.family = re.match("gcc|clang", program.replace("g++", "gcc"))[0]
        self.kind = "c" if language == "C" else "c++"
        self.suffix = "c" if language == "C" else "cpp"
        # gcc tells of results that are not used only where it makes code.
        self.check = ["-S", "-o", os.devnull] if self.family == "gcc" else ["-fsyntax-only"]

    def run(self, *arguments):
        command = [self.program, *include, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        return done.returncode, done.stdout + done.stderr

    def clean(self, what, *arguments):
        status, text = self.run(*arguments)
        if status or text:
            failures.append(f"{self.name}: {what} is not clean:\n{text}")

    def standards(self):
        if self.language == "C":
            return ["-std=c11", "-std=c17", "-std=c2x"]
        return ["-std=c++20", "-std=c++2b", "-std=c++17 -DNO_NAMED"]

    def works(self, folder):
        path = os.path.join(folder, "try." + self.suffix)
        write(path, "int main(void) { return 0; }\n")
        return shutil.which(self.program) and self.run(self.standards()[0], path, "-o", path + ".out")[0] == 0

    def precompile(self, folder):
        """names.h, and the arguments with which it comes."""
        self.standard = self.standards()[0]
        header = os.path.join(folder, self.name.replace(" ", "-") + ".h")
        write(header, '#include "names.h"\n')
        made = header + (".gch" if self.family == "gcc" else ".pch")
        self.clean("names.h", self.standard, "-I" + here, "-x", self.kind + "-header", header, "-o", made)
        self.with_names = ["-I" + here, "-include", header] if self.family == "gcc" else ["-include-pch", made]

    def judge(self, mistakes, folder, pool):
        """What the compiler has to say about each mistake, at the worst: error, warning or silent."""
        verdicts = {}
        for kind in "error", "warning":
            found = True
            while found:
                rest = [m for m in mistakes if m not in verdicts and not m.says]
                some = [rest[i:i + TOGETHER] for i in range(0, len(rest), TOGETHER)]
                found = sum(pool.map(lambda few: self.told(kind, few, folder), some), [])
                verdicts.update((m, kind) for m in found)
        rest = [m for m in mistakes if m not in verdicts]
        verdicts.update(zip(rest, pool.map(lambda m: self.judge_alone(m, folder), rest)))
        return verdicts

    def judge_alone(self, mistake, folder):
        """The same of one mistake."""
        path = os.path.join(folder, mistake.name + ".c")
        write(path, function(mistake.name, mistake.text))
        status, text = self.run(self.standard, *self.with_names, "-x", self.kind, path, *self.check)
        told = re.findall(r":\d+: (error|warning): ", text)
        if mistake.says not in text:
            failures.append(f"{self.name}: {mistake.text}: the compiler does not say {mistake.says}:\n{text}")
        if status and "error" not in told:
            failures.append(f"{self.name}: {mistake.text}: the compiler fails without an error:\n{text}")
        return "error" if status else "warning" if told else "silent"

    def told(self, kind, mistakes, folder):
        """Those for which a compilation of all of them gives a diagnostic of that kind that is surely their own.

        Each is a function in a "file" of its own, with a guard on both sides: a function with one diagnostic that is
        known. Where a guard does not give it, and no other, what stands beside it is left for later.
        """
        guard = "guard;" if kind == "error" else "lg_relu(x);"
        path = os.path.join(folder, f"from_{mistakes[0].name}.c")
        write(path, "".join(f'#line 1 "guard{i}"\n' + function(f"guard{i}", guard) +
                            (f'#line 1 "{mistakes[i].name}"\n' + function(mistakes[i].name, mistakes[i].text)
                             if i < len(mistakes) else "") for i in range(len(mistakes) + 1)))
        # What gcc tells of the text of a macro it places in the header, unless it is asked not to. Errors come all the
        # same, warnings may not.
        options = ["-ferror-limit=0"] if self.family == "clang" else ["-ftrack-macro-expansion=0"] * (kind == "error")
        text = self.run(self.standard, *self.with_names, *options, "-x", self.kind, path, *self.check)[1]
        told = collections.Counter(re.findall(rf"^(\w+):\d+:\d+: {kind}:", text, re.M))
        fine = [told[f"guard{i}"] == 1 for i in range(len(mistakes) + 1)]
        return [m for i, m in enumerate(mistakes) if told[m.name] and fine[i] and fine[i + 1]]


class Mistake:
    """A line of mistakes.txt with what is indented below it."""

    def __init__(self, name, text):
        self.name, self.text, self.says, self.right, self.silent, self.fine = name, text, "", [], [], []

    def known(self, compiler):
        """What must be found: silent, fine, which is silent too, or nothing in particular."""
        for who, what in (self.silent, "silent"), (self.fine, "fine"):
            if compiler.language in who or f"{compiler.family} {compiler.language}" in who:
                return what
        return "told"


def read_mistakes():
    mistakes = []
    for number, line in enumerate(open(os.path.join(here, "mistakes.txt")), 1):
        field = re.match(r"    (right|silent|fine|says): (.*)", line)
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            mistakes.append(Mistake(f"mistake{number}", line.strip()))
        elif field and field[1] == "right":
            mistakes[-1].right.append(field[2])
        elif field and field[1] == "says":
            mistakes[-1].says = field[2]
        elif field and re.fullmatch(r"((gcc |clang )?C(\+\+)?(, | - ))+.+", field[2]):
            getattr(mistakes[-1], field[1]).extend(field[2].split(" - ")[0].split(", "))
        else:
            sys.exit(f"mistakes.txt:{number}: a mistake has 'right: code' and 'silent: compilers - reason' below it")
    twice = [text for text, count in collections.Counter(m.text for m in mistakes).items() if count > 1]
    if twice:
        failures.append("mistakes.txt has these twice: " + ", ".join(twice))
    return mistakes


def function(name, code):
    """An expression gives a result; what ends in ; or } is statements."""
    return f"void {name}(void)\n{{\n{code if code[-1] in ';}' else 'sink = ' + code + ';'}\n}}\n"


def nested():
    text = "w"
    for level in range(3):
        text = f"lg_relu(lg_sum(lg_conv2d({text}, w, b, .stride = 2, .padding = {level}), .dims = LG_DIMS(0, 1)))"
    return "void nested(void)\n{\n" + f"sink = lg_forward(net, {text});\n" * 200 + "}\n"


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def check_macros():
    """Every macro that is called as a function is in correct.c or an example and, misused, in mistakes.txt."""
    folder = os.path.join(root, "libgrad", "grad")
    headers = "".join(open(os.path.join(folder, name)).read() for name in os.listdir(folder) if name.endswith(".h"))
    for file in "correct.c", "mistakes.txt":
        text = open(os.path.join(here, file)).read() + (examples.source(root)[0] if file == "correct.c" else "")
        for macro in sorted(set(re.findall(r"^#define (lg_\w+)\(", headers, re.M))):
            if not re.search(rf"\b{macro}\(", text):
                failures.append(f"{file}{' and the examples have' if file == 'correct.c' else ' has'} no {macro}()")


def main():
    mistakes = read_mistakes()
    check_macros()
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compilers = [Compiler(program, language) for pair in PAIRS for program, language in zip(pair.split(), ["C", "C++"])]
        compilers = [compiler for compiler in compilers if compiler.works(work)]
        if not compilers:
            sys.exit(77)
        rights, deep = os.path.join(work, "rights.c"), os.path.join(work, "nested.c")
        write(rights, "".join(function(f"right_{i}_{j}", right)
                              for i, mistake in enumerate(mistakes) for j, right in enumerate(mistake.right)))
        write(deep, nested())
        shown = {"the examples": examples.source(root)[0], "the examples without options": examples.source(root, plain=True)[0]}
        for name, text in shown.items():
            write(os.path.join(work, name), text)

        print(f"{len(mistakes)} mistakes\n\n{'':15}   errors  warnings  silent  fine  nested calls")
        for compiler in compilers:
            compiler.precompile(work)
            for standard in compiler.standards():
                compiler.clean("correct.c as " + standard, *standard.split(), *WARNINGS, "-x", compiler.kind,
                               os.path.join(here, "correct.c"), *compiler.check)
                for name in list(shown)["NO_NAMED" in standard:]:
                    compiler.clean(f"{name} as {standard}", *standard.split(), *examples.WARNINGS, "-fsyntax-only", "-x",
                                   compiler.kind, os.path.join(work, name))
            compiler.clean("a right form of mistakes.txt", compiler.standard, *WARNINGS, *compiler.with_names, "-x",
                           compiler.kind, rights, *compiler.check)
            verdicts = compiler.judge(mistakes, work, pool)
            for mistake, verdict in verdicts.items():
                known = mistake.known(compiler)
                if (verdict == "silent") != (known != "told"):
                    failures.append(f"{compiler.name}: {verdict}, must be {known}: {mistake.text}")
            start = time.monotonic()
            compiler.clean("a file of nested calls", compiler.standard, *compiler.with_names, "-x", compiler.kind, deep,
                           *compiler.check)
            seconds = time.monotonic() - start
            if seconds > NESTED_LIMIT:
                failures.append(f"{compiler.name}: nested calls take {seconds:.1f} s to compile")
            fine = sum(mistake.known(compiler) == "fine" for mistake in mistakes)
            count = collections.Counter(verdicts.values())
            print(f"{compiler.name:15}{count['error']:9}{count['warning']:10}{count['silent'] - fine:8}{fine:6}"
                  f"{seconds:12.2f} s", flush=True)
    if failures:
        print("\n" + "\n".join(failures))
        sys.exit(1)


main()
