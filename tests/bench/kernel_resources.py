#!/usr/bin/env python3
"""Registers, spills and shared memory of every CUDA kernel, as a table.

kernel_resources.py [--nvcc PATH] [--architecture 90 ...] [--launches FILE] [--no-spills] SOURCE.cu ...

Compiles each source for each architecture and reads what `ptxas -v` says. Shared memory is chosen at
the launch, where ptxas does not see it: --launches takes a file that a test program has written on
the host under REDSPINE_ON_HOST_LAUNCH_LOG. With --no-spills a kernel that spills registers, or that
needs a stack, makes the exit code 1.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

Usage = collections.namedtuple("Usage", "registers spilled_bytes stack_bytes static_shared_bytes")


def short_name(demangled):
    """The name without what all kernels share: as tests/cuda_on_host/symbol.cpp writes it."""
    name = demangled
    for noise in ("void ", "redspine::", "(anonymous namespace)::"):
        name = name.replace(noise, "")
    # The parameters are the last pair of parentheses; within them there may be others.
    depth = 0
    for i in range(len(name) - 1, -1, -1):
        depth += (name[i] == ")") - (name[i] == "(")
        if depth == 0:
            return name[:i] if name[i] == "(" else name
    return name


def usages(nvcc, source, architecture):
    """{kernel: Usage} of one source for one architecture."""
    command = [nvcc, "-std=c++20", "-O3", "-DNDEBUG", f"-I{ROOT}", "--expt-relaxed-constexpr",
               f"-arch=sm_{architecture}", "-cubin", "-Xptxas=-v", "-o", os.devnull, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"kernel_resources.py: {source} does not compile:\n{done.stderr}")
    text = subprocess.run(["c++filt"], input=done.stderr, capture_output=True, text=True,
                          check=True).stdout
    result = {}
    for part in re.split(r"Compiling entry function '", text)[1:]:
        name = short_name(part[: part.index("' for 'sm_")])
        stack, stores, loads = map(int, re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
            part).groups())
        shared = re.search(r"(\d+) bytes smem", part)
        result[name] = Usage(int(re.search(r"Used (\d+) registers", part).group(1)),
                             stores + loads, stack, int(shared.group(1)) if shared else 0)
    return result


def launches(path):
    """{kernel: (threads per block, bytes of shared memory)}, the largest of each."""
    result = {}
    for line in pathlib.Path(path).read_text().splitlines():
        name, threads, shared_bytes = line.split("\t")
        before = result.get(name, (0, 0))
        result[name] = (max(before[0], int(threads)), max(before[1], int(shared_bytes)))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--architecture", nargs="+", default=["80", "90", "100"])
    parser.add_argument("--launches")
    parser.add_argument("--no-spills", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()

    cases = [(source, architecture) for source in options.sources
             for architecture in options.architecture]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda case: usages(options.nvcc, *case), cases))
    table = collections.defaultdict(dict)  # {kernel: {architecture: Usage}}
    for (_, architecture), result in zip(cases, results):
        for name, usage in result.items():
            table[name][architecture] = usage
    if not table:
        sys.exit("kernel_resources.py: no kernel in these sources")
    seen = launches(options.launches) if options.launches else {}

    heads = [f"sm_{architecture}" for architecture in options.architecture]
    print("| kernel | threads | shared bytes | " + " | ".join(f"{head} registers" for head in heads)
          + " | spilled bytes |")
    print("|---|--:|--:|" + "--:|" * (len(heads) + 1))
    bad = []
    for name in sorted(table):
        by_architecture = table[name]
        spilled = max(usage.spilled_bytes for usage in by_architecture.values())
        stack = max(usage.stack_bytes for usage in by_architecture.values())
        static = max(usage.static_shared_bytes for usage in by_architecture.values())
        threads, dynamic = seen.get(name, ("", ""))
        shared = static + dynamic if dynamic != "" else (static or "")
        registers = [str(by_architecture[architecture].registers)
                     for architecture in options.architecture]
        print(f"| `{name}` | {threads} | {shared} | " + " | ".join(registers) + f" | {spilled} |")
        if spilled > 0 or stack > 0:
            bad.append(f"{name}: {spilled} bytes spilled, {stack} bytes of stack")
    for line in bad:
        print("kernel_resources.py: " + line, file=sys.stderr)
    return 1 if options.no_spills and bad else 0


if __name__ == "__main__":
    sys.exit(main())
