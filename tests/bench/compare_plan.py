#!/usr/bin/env python3
"""compare_plan.py REDSPINE [--ranks 1 2 4] [--rounds 3] [--machine FILE]: planned against measured.

Measures the machine for each number of ranks (`bench --write-machine`), unless FILE is given, then the
step of every configuration below (`bench --part step`), in rounds that are interleaved with one another,
and prints them beside what `redspine plan` says. Times are medians over the rounds. Nothing else should run meanwhile.
"""
import argparse
import array
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

VOCABULARY = 8192
# layers, width, length, micro-batch, accumulated micro-batches, more settings
CONFIGS = [
    (4, 256, 256, 4, 1, []),
    (8, 256, 512, 2, 1, []),
    (2, 512, 256, 8, 1, []),
    (4, 512, 512, 2, 2, []),
    (6, 384, 256, 4, 1, []),
    (3, 640, 256, 4, 1, []),
    (2, 1024, 256, 2, 1, []),
    (2, 768, 1024, 1, 1, []),
    (4, 512, 256, 4, 1, ["parallel.recompute=block"]),
    (4, 512, 256, 4, 1, ["parallel.recompute=attention"]),
    (4, 512, 256, 4, 1, ["model.family=llama"]),
    (4, 512, 256, 4, 4, ["model.dropout=0.1"]),
]


def run(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}")
    return done.stdout


def json_line(text):
    return json.loads(next(line for line in text.splitlines() if line.startswith("{")))


def settings(config, ranks, tensor):
    layers, width, length, micro_batch, accumulated, more = config
    return [f"model.num_layers={layers}", f"model.hidden_size={width}",
            f"model.num_heads={width // 64}", f"model.max_sequence_length={length}",
            f"batch.micro_batch_size={micro_batch}",
            f"batch.global_batch_size={micro_batch * accumulated * ranks // tensor}",
            f"parallel.tensor={tensor}"] + more


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("redspine")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--machine")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        draw = random.Random(0)
        with open(folder / "tokens.bin", "wb") as file:
            array.array("H", (draw.randrange(VOCABULARY) for _ in range(1_000_000))).tofile(file)
        (folder / "run.yaml").write_text(
            "run: {name: compare, device: cpu}\n"
            f"model: {{vocab_size: {VOCABULARY}}}\n"
            f"data: {{format: raw_u16, train: [{{path: {folder}/tokens.bin}}]}}\n"
            "train: {steps: 10}\ncheckpoint: {interval: 0}\n")
        for ranks in options.ranks:
            compare(options, folder, ranks)


def compare(options, folder, ranks):
    mpirun = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    config = ["--config", folder / "run.yaml"]
    machine = options.machine
    if machine is None:
        machine = folder / f"machine-{ranks}.yaml"
        run(mpirun + [options.redspine, "bench", *config, "--write-machine", machine, "--largest",
                      "64000000", "--set", *settings(CONFIGS[2], ranks, 1)])
    cases = [(each, tensor) for each in CONFIGS for tensor in sorted({1, min(ranks, 2)})
             if each[1] // 64 % tensor == 0]
    seconds = [[] for _ in cases]
    for _ in range(options.rounds):
        for case, (each, tensor) in zip(seconds, cases):
            line = json_line(run(mpirun + [
                options.redspine, "bench", *config, "--part", "step", "--matrix", "64", "--steps",
                str(options.steps), "--json", "--set", *settings(each, ranks, tensor)]))
            case.append(line["seconds"])
    errors = []
    print(f"{ranks} ranks\nlayers width length micro accumulated tensor  measured   planned    error")
    for case, (each, tensor) in zip(seconds, cases):
        line = json_line(run([options.redspine, "plan", *config, "--ranks", str(ranks), "--machine",
                              machine, "--json", "--set", *settings(each, ranks, tensor)]))
        measured = statistics.median(case)
        planned = line["predicted"]["step_seconds"]
        errors.append(abs(planned / measured - 1.0))
        print("{:6} {:5} {:6} {:5} {:11} {:6} {:9.4f} {:9.4f} {:+7.1f}%  {}".format(
            *each[:5], tensor, measured, planned, 100 * (planned / measured - 1.0),
            " ".join(each[5])))
    print(f"error: median {100 * statistics.median(errors):.1f}%, worst {100 * max(errors):.1f}%",
          flush=True)


if __name__ == "__main__":
    main()
