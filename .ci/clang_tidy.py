#!/usr/bin/env python3
"""clang_tidy.py BUILD_FOLDER < FILES: clang-tidy over sources, many in one translation unit.

What clang-tidy takes is nearly all for headers: the standard library, fmt, nlohmann-json and
GoogleTest are parsed and matched by every check again for each source. So sources with the same
compiler flags and rules are included by one file and looked at together. Where two of them do not compile
together (both define `kConfig` in an unnamed namespace), the second goes to the next unit. Findings
are in files of ours by the HeaderFilterRegex of .clang-tidy, whichever unit includes them.

Exit code 0: clean; 1: findings, which are printed.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

# Larger units gain little more, and a few of them could not be spread over the CPUs.
MAX_SOURCES = 24
# The stand-in of CUDA uses a builtin of GCC that clang 14 lacks.
CLANG_FLAGS = ["-D__builtin_clear_padding(pointer)=static_cast<void>(pointer)"]


def flags_of(command):
    """The compiler's arguments but for what is compiled, to where, and launchers before it."""
    words = shlex.split(command)
    while not re.search(r"(\+\+|clang|gcc|cc)(-\d+)?$", words[0]) or words[0].endswith("ccache"):
        words.pop(0)
    flags = []
    skip = True  # the compiler
    for word in words:
        if not skip and word not in ("-o", "-c", "-MF", "-MT", "-MD"):
            flags.append(word)
        skip = word in ("-o", "-c", "-MF", "-MT")
    return tuple(flags)


def read_flags(build):
    """By source, relative to the repository: of the first target that compiles it, since no source
    depends on its target by preprocessor."""
    flags = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        name = os.path.relpath(entry["file"])
        flags.setdefault(name, flags_of(entry["command"]))
    return flags


def rules_for(source):
    """The folder whose .clang-tidy goes for a source."""
    folder = pathlib.Path(source).parent
    while not (folder / ".clang-tidy").exists():
        folder = folder.parent
    return folder


def flags_for(source, known):
    """A source that this build does not compile is looked at like its nearest relative."""
    if source in known:
        return known[source]
    def closeness(other):
        return len(os.path.commonpath([source, other])), other
    return known[max(known, key=closeness)]


class Unit:
    """Sources that are looked at together, as a file in a folder of its own."""

    def __init__(self, folder, sources, flags):
        self.folder = folder
        self.file = folder / "unit.cpp"
        self.sources = sources
        self.command = ["clang++", *flags, *CLANG_FLAGS, f"-I{os.getcwd()}"]
        folder.mkdir(parents=True, exist_ok=True)
        entry = {"directory": os.getcwd(), "file": str(self.file),
                 "arguments": [*self.command, "-c", str(self.file)]}
        (folder / "compile_commands.json").write_text(json.dumps([entry]))

    def write(self):
        lines = [f'#include "{name}"  // NOLINT(bugprone-suspicious-include)\n'
                 for name in self.sources]
        self.file.write_text("".join(lines))

    def split_off_conflicts(self):
        """Removes and returns the sources that do not compile behind the others."""
        removed = []
        while True:
            self.write()
            run = subprocess.run(
                [*self.command, "-fsyntax-only", "-w", "-ferror-limit=0", str(self.file)],
                capture_output=True, text=True, check=False)
            wrong = set()
            line_of_unit = 1
            for line in run.stderr.splitlines():
                if match := re.match(r"In file included from .*/unit\.cpp:(\d+):$", line):
                    line_of_unit = int(match[1])
                elif re.search(r":\d+: (fatal )?error:", line):
                    wrong.add(self.sources[line_of_unit - 1])
            # What does not compile by itself is for clang-tidy to tell.
            wrong.discard(self.sources[0])
            if not wrong:
                return removed
            removed += [name for name in self.sources if name in wrong]
            self.sources = [name for name in self.sources if name not in wrong]

    def findings(self):
        run = subprocess.run(["clang-tidy", "-p", str(self.folder), "--quiet", str(self.file)],
                             capture_output=True, text=True, check=False)
        # Standard error counts warnings inside of libraries.
        noise = re.compile(r"^\d+ warnings?( and \d+ errors?)? generated\.$\n?", re.MULTILINE)
        text = run.stdout + noise.sub("", run.stderr)
        return text if run.returncode != 0 or text.strip() else ""


def look_at(unit):
    """The sources that were left out, how many were not, and findings in these."""
    left_out = unit.split_off_conflicts()
    return left_out, len(unit.sources), unit.findings()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    sources = sys.stdin.read().split()
    known = read_flags(build)
    alike = collections.defaultdict(list)
    for source in sources:
        alike[rules_for(source), flags_for(source, known)].append(source)

    # Units lie below a copy of the .clang-tidy of their sources, and of those that it inherits from.
    root = build / "clang_tidy"
    shutil.rmtree(root, ignore_errors=True)
    for rules in {rules for rules, _ in alike}:
        for folder in (rules, *rules.parents):
            if (folder / ".clang-tidy").exists():
                (root / folder).mkdir(parents=True, exist_ok=True)
                shutil.copy(folder / ".clang-tidy", root / folder)

    num_units = 0
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {}

        def start(kind, names):
            nonlocal num_units
            rules, flags = kind
            for begin in range(0, len(names), MAX_SOURCES):
                unit = Unit(root / rules / str(num_units), names[begin:begin + MAX_SOURCES], flags)
                running[pool.submit(look_at, unit)] = kind
                num_units += 1

        for kind, names in sorted(alike.items(), key=lambda item: -len(item[1])):
            start(kind, names)
        while running:
            done, _ = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                left_out, num_sources, text = future.result()
                failed = failed or text != ""
                print(f"{num_sources} together, {len(left_out)} left for another unit\n{text}",
                      end="", flush=True)
                start(running.pop(future), left_out)
    print(f"{len(sources)} files in {num_units} units")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
