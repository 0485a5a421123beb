"""Training steps of GPT-2 124M beside PyTorch on the CPU: same shapes, threads and machine.

    /usr/bin/python3 tests/bench/compare_pytorch.py --redspine build/cpu-release/launch/redspine

The programs take turns; medians over the rounds count. CPU time is that of all threads and processes:
on a machine with other work its ratio is the one to trust. PyTorch runs with what it has: fused or
foreach AdamW, scaled_dot_product_attention and torch.compile where they exist; variables that hold its
libraries to other kernels than their own choice are unset. The processor and the kernels that ran are
named. `--ranks 2` compares DistributedDataParallel over gloo with as many data-parallel ranks,
`--shapes` others than 1x256, `--autocast` our fp32 with PyTorch's bf16.
"""

import argparse
import array
import contextlib
import ctypes
import glob
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
V, D, H, L, MAX_T = 50257, 768, 12, 12, 1024
OPENBLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
# What makes libraries choose other kernels than their own tables of processors would.
HOLDS_BACK = (
    *("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE"),
    *("MKL_CBWR", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "DNNL_DEFAULT_FPMATH_MODE"),
    *("ONEDNN_DEFAULT_FPMATH_MODE", "ATEN_CPU_CAPABILITY", "OMP_PROC_BIND", "OMP_PLACES"),
    *("OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"),
)


def best_environment(threads):
    """Of a program that chooses for itself, but for the number of its threads."""
    environment = {name: value for name, value in os.environ.items() if name not in HOLDS_BACK}
    environment["OMP_NUM_THREADS"] = str(threads)
    return environment


def processor():
    """Its name, family and model: virtual machines often hide the rest of the name."""
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    flags = facts["flags"].split()
    widest = [word for word in ("amx_tile", "avx512_bf16", "avx512f", "avx2") if word in flags]
    return "{}, family {} model {}, {}".format(
        facts["model name"], facts["cpu family"], facts["model"], "/".join(widest)
    )


def libraries_of_this_process():
    """The numerical libraries that are loaded, and which kernels they have chosen."""
    names = []
    paths = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()}
    for path in sorted(path for path in paths if ".so" in path):
        name = pathlib.Path(path).name
        if "openblas" in name:
            core = ctypes.CDLL(path).openblas_get_corename
            core.restype = ctypes.c_char_p
            names.append("{} ({} kernels)".format(name, core().decode()))
        elif name.startswith(("libmkl_core", "libmkl_avx", "libmkl_def", "libblis", "libdnnl")):
            names.append(name)
    return names


def make_model(torch):
    functional = torch.nn.functional

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = torch.nn.LayerNorm(D), torch.nn.LayerNorm(D)
            self.qkv, self.output = torch.nn.Linear(D, 3 * D), torch.nn.Linear(D, D)
            self.up, self.down = torch.nn.Linear(D, 4 * D), torch.nn.Linear(4 * D, D)

        def attend(self, x, mask):
            batch, length, _ = x.shape
            parts = self.qkv(x).view(batch, length, 3, H, D // H).permute(2, 0, 3, 1, 4)
            query, key, value = parts[0], parts[1], parts[2]
            if hasattr(functional, "scaled_dot_product_attention"):
                out = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            else:
                scores = query @ key.transpose(-2, -1) * (D // H) ** -0.5 + mask
                out = scores.softmax(-1) @ value
            return self.output(out.transpose(1, 2).reshape(batch, length, D))

        def forward(self, x, mask):
            x = x + self.attend(self.norm1(x), mask)
            up = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
            return x + self.down(up)

    class Gpt(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = torch.nn.Embedding(V, D), torch.nn.Embedding(MAX_T, D)
            self.blocks = torch.nn.ModuleList(Block() for _ in range(L))
            self.norm = torch.nn.LayerNorm(D)

        def forward(self, tokens, targets):
            length = tokens.shape[1]
            mask = torch.full((length, length), float("-inf")).triu(1)
            x = self.token(tokens) + self.position(torch.arange(length))
            for block in self.blocks:
                x = block(x, mask)
            logits = self.norm(x) @ self.token.weight.t()
            return functional.cross_entropy(logits.view(-1, V), targets.reshape(-1))

    return Gpt()


def work(arguments):
    """One PyTorch process: prints the seconds of its steps."""
    import torch

    batch, length = map(int, arguments.shapes[0].split("x"))
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = make_model(torch)
    if arguments.ranks > 1:
        torch.distributed.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    elif hasattr(torch, "compile") and arguments.compile:
        model = torch.compile(model)
    options = {"lr": 1e-4, "weight_decay": 0.1}
    try:
        optimizer = torch.optim.AdamW(model.parameters(), fused=True, **options)
    except (RuntimeError, TypeError):
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True, **options)
    tokens = torch.randint(0, V, (batch, length + 1))

    precision = contextlib.nullcontext()
    if arguments.autocast:
        precision = torch.autocast("cpu", dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with precision:
            loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(2):
        step()
    seconds = []
    cpu = time.process_time()
    for _ in range(arguments.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / arguments.steps
    backend = getattr(torch.backends, "cpu", None)  # from 2.0 on
    capability = backend.get_cpu_capability() if backend else "kernels of its own choice"
    kernels = ["PyTorch " + torch.__version__, capability] + libraries_of_this_process()
    if torch.backends.mkldnn.is_available():
        kernels.append("oneDNN")
    result = {"seconds": statistics.median(seconds), "cpu_seconds": cpu, "kernels": ", ".join(kernels)}
    print(RESULT + json.dumps(result), flush=True)


# Marks the line of a result: gloo prints lines of its own to standard output.
RESULT = "result: "


def result_of(process):
    output = process.communicate()[0].decode(errors="replace")
    lines = [line for line in output.splitlines() if RESULT in line]
    if process.returncode != 0 or not lines:
        sys.exit("PyTorch ended with code {}:\n{}".format(process.returncode, output))
    return json.loads(lines[-1].partition(RESULT)[2])


def run_pytorch(arguments, shape):
    environment = best_environment(arguments.threads)
    environment["LD_LIBRARY_PATH"] = OPENBLAS + ":" + environment.get("LD_LIBRARY_PATH", "")
    for library in glob.glob("/usr/lib/x86_64-linux-gnu/libjemalloc.so*")[:1]:
        environment["LD_PRELOAD"] = library
        environment["MALLOC_CONF"] = (
            "thp:always,background_thread:false,dirty_decay_ms:-1,muzzy_decay_ms:-1"
        )
    command = [sys.executable, __file__, "--work", "--shapes", shape]
    for name in ("threads", "ranks", "steps"):
        command += ["--" + name, str(getattr(arguments, name))]
    for name in ("compile", "autocast"):
        if getattr(arguments, name):
            command.append("--" + name)
    environment.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", GLOO_SOCKET_IFNAME="lo")
    environment["WORLD_SIZE"] = str(arguments.ranks)
    processes = [
        subprocess.Popen(command, env=dict(environment, RANK=str(rank)), stdout=subprocess.PIPE)
        for rank in range(arguments.ranks)
    ]
    results = [result_of(process) for process in processes]
    return results[0]["seconds"], sum(r["cpu_seconds"] for r in results), results[0]["kernels"]


def run_redspine(arguments, shape, data):
    batch, length = map(int, shape.split("x"))
    command = [arguments.redspine, "bench", "--json", "--steps", str(arguments.steps)]
    if arguments.ranks > 1:
        command = [ROOT / "tests/support/mpirun.sh", str(arguments.ranks)] + command
    command += ["--config", ROOT / "configs/gpt2-small.yaml", "--set", "run.device=cpu"]
    command += [f"data.train=[{{path: {data}}}]", "data.validation=[]", "train.eval_interval=0"]
    command += [f"batch.sequence_length={length}", f"batch.micro_batch_size={batch}"]
    command += [f"batch.global_batch_size={batch * arguments.ranks}"]
    environment = best_environment(arguments.threads)
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    line = json.loads(output[output.index(b'{"kind"') :])
    return line["seconds"], line["cpu_seconds"] * arguments.ranks, line["step_over_floor"]


def write_tokens(path, count=300000):
    """Megatron's pair of files, one document of u16 tokens."""
    tokens = array.array("H", ((i * 7919 + i // 13) % V for i in range(count)))
    path.with_suffix(".bin").write_bytes(tokens.tobytes())
    header = b"MMIDIDX\0\0" + struct.pack("<QB", 1, 8) + struct.pack("<QQ", 1, 2)
    index = header + struct.pack("<i", count) + struct.pack("<q", 0) + struct.pack("<qq", 0, 1)
    path.with_suffix(".idx").write_bytes(index)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redspine", default=str(ROOT / "build/cpu-release/launch/redspine"))
    parser.add_argument("--shapes", nargs="+", default=["1x256"], help="B x T, like 4x64")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5, help="a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="torch.compile where it exists")
    parser.add_argument("--autocast", action="store_true", help="PyTorch in bf16")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments)
        return
    print("processor: " + processor(), flush=True)
    kernels = None
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "tokens"
        write_tokens(data)
        for shape in arguments.shapes:
            ours, theirs = [], []
            for _ in range(arguments.rounds):
                ours.append(run_redspine(arguments, shape, data))
                theirs.append(run_pytorch(arguments, shape))
            if kernels != theirs[0][2]:
                kernels = theirs[0][2]
                print("PyTorch's kernels: " + kernels, flush=True)
            clock = [statistics.median(row[0] for row in rows) for rows in (ours, theirs)]
            cpu = [statistics.median(row[1] for row in rows) for rows in (ours, theirs)]
            floor = statistics.median(row[2] for row in ours)
            print(
                f"{shape}, {arguments.ranks} ranks x {arguments.threads} threads: "
                f"ours {clock[0]:.2f} s ({cpu[0]:.2f} s of CPU time; step / floor {floor:.2f}), "
                f"PyTorch{' bf16' if arguments.autocast else ''} {clock[1]:.2f} s ({cpu[1]:.2f}); "
                f"{clock[1] / clock[0]:.2f}x on the clock, {cpu[1] / cpu[0]:.2f}x by CPU time",
                flush=True,
            )


if __name__ == "__main__":
    main()
