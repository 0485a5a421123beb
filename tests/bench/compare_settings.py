#!/usr/bin/env python3
"""What settings cost: steps of GPT-2 124M with and without them, on this machine.

    tests/bench/compare_settings.py --shape 1x256 --settings run.exact=true
    tests/bench/compare_settings.py --ranks 2 --all parallel.tensor=2 --settings run.exact=true

The two take turns, and each keeps its fastest round, as what other work on the machine adds is never
negative. `--all` are settings of both, `--samples` sequences a rank and step (micro-batches of one where
there are several), `--config` another model. Another build takes the place of the settings with `--other`.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from compare_pytorch import ROOT, best_environment, processor, write_tokens  # noqa: E402


def seconds_of(program, arguments, data, settings):
    batch, length = map(int, arguments.shape.split("x"))
    command = [program, "bench", "--json", "--steps", str(arguments.steps)]
    command += ["--matrix", "256", "--largest", "1000000"]  # no floor is asked for
    if arguments.ranks > 1:
        command = [ROOT / "tests/support/mpirun.sh", str(arguments.ranks)] + command
    command += ["--config", arguments.config, "--set", "run.device=cpu", "data.validation=[]"]
    command += [f"data.train=[{{path: {data}}}]", "train.eval_interval=0"]
    command += [f"batch.sequence_length={length}", f"batch.micro_batch_size={batch}"]
    command += [f"batch.global_batch_size={arguments.samples or batch * arguments.ranks}"]
    command += arguments.all + settings
    environment = best_environment(arguments.threads)
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return json.loads(output[output.index(b'{"kind"') :])["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redspine", default=str(ROOT / "build/cpu-release/launch/redspine"))
    parser.add_argument("--other", help="the program with the settings, if it is another one")
    parser.add_argument("--config", default=str(ROOT / "configs/gpt2-small.yaml"))
    parser.add_argument("--settings", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--all", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--shape", default="1x256", help="B x T of a micro-batch")
    parser.add_argument("--samples", type=int, help="global batch; default: a micro-batch a rank")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--steps", type=int, default=4, help="a round")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    plain, changed = [], []
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "train"
        write_tokens(data)
        for _ in range(arguments.rounds):
            plain.append(seconds_of(arguments.redspine, arguments, data, []))
            changed.append(
                seconds_of(arguments.other or arguments.redspine, arguments, data, arguments.settings)
            )
    print(f"{processor()}; {arguments.ranks} x {arguments.threads} threads, {arguments.shape}")
    print("without:", *(f"{s:.3f}" for s in plain), " with:", *(f"{s:.3f}" for s in changed))
    print(f"{min(changed) / min(plain):.3f} times as long with {' '.join(arguments.settings)}")


if __name__ == "__main__":
    main()
