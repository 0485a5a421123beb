#!/usr/bin/env python3
"""predictions.py REDSPINE: the tables of predictions in docs/scaling.md.

Asks `redspine plan` what published runs would reach with Redspine on the machines of configs/machines/,
one description for all of a machine's rows, and what a range of models would on 1 to 4096 GPUs. Nothing
is measured here.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPT2 = "family: gpt2, "
LLAMA = "family: llama, "
# Qwen2.5 without the biases of queries, keys and values that the family llama lacks.
QWEN_05 = LLAMA + ("num_layers: 24, hidden_size: 896, num_heads: 14, num_kv_heads: 2, ffn_size: 4864, "
                   "vocab_size: 151936, tie_embeddings: true, max_sequence_length: 1024")
QWEN_15 = LLAMA + ("num_layers: 28, hidden_size: 1536, num_heads: 12, num_kv_heads: 2, ffn_size: 8960, "
                   "vocab_size: 151936, tie_embeddings: true, max_sequence_length: 1024")
QWEN_3 = LLAMA + ("num_layers: 36, hidden_size: 2048, num_heads: 16, num_kv_heads: 2, ffn_size: 11008, "
                  "vocab_size: 151936, tie_embeddings: true, max_sequence_length: 1024")
QWEN_7 = LLAMA + ("num_layers: 28, hidden_size: 3584, num_heads: 28, num_kv_heads: 4, ffn_size: 18944, "
                  "vocab_size: 152064, max_sequence_length: 1024")
LLAMA_8 = LLAMA + ("num_layers: 32, hidden_size: 4096, num_heads: 32, num_kv_heads: 8, ffn_size: 14336, "
                   "vocab_size: 128256, max_sequence_length: 8192")
MEGATRON_17 = GPT2 + ("num_layers: 24, hidden_size: 2304, num_heads: 24, vocab_size: 131072, "
                      "max_sequence_length: 4096")
MEGATRON_71 = GPT2 + ("num_layers: 36, hidden_size: 4096, num_heads: 32, vocab_size: 131072, "
                      "max_sequence_length: 4096")
# who, model, GPUs, settings, published MFU in percent
SHARDED = "parallel.optimizer=sharded"
ROWS = [
    ("llm.q 0.5B", QWEN_05, 1, ["batch.micro_batch_size=32", "batch.global_batch_size=512"], 45),
    ("llm.q 1.5B", QWEN_15, 1, ["batch.micro_batch_size=16", "batch.global_batch_size=512"], 55),
    ("llm.q 3B", QWEN_3, 1, ["batch.micro_batch_size=8", "batch.global_batch_size=512"], 57),
    ("llm.q 7B", QWEN_7, 1, ["batch.micro_batch_size=4", "batch.global_batch_size=512"], 60),
    ("llm.q 7B", QWEN_7, 8, ["batch.micro_batch_size=4", "batch.global_batch_size=512", SHARDED], 61),
    ("TorchTitan 8B, compiled", LLAMA_8, 8,
     ["batch.micro_batch_size=2", "batch.global_batch_size=16", SHARDED], 39),
    ("TorchTitan 8B, compiled", LLAMA_8, 128,
     ["batch.micro_batch_size=2", "batch.global_batch_size=256", SHARDED], 38),
    ("TorchTitan 8B, eager", LLAMA_8, 8,
     ["batch.micro_batch_size=2", "batch.global_batch_size=16", SHARDED], 33),
    ("Megatron 1.7B", MEGATRON_17, 48,
     ["batch.micro_batch_size=4", "batch.global_batch_size=192", SHARDED], 41),
    ("Megatron 7.1B", MEGATRON_71, 96,
     ["batch.micro_batch_size=4", "batch.global_batch_size=192", "parallel.tensor=2", SHARDED], 47),
]
MODELS = [
    ("GPT-2 small, 124M", GPT2 + "num_layers: 12, hidden_size: 768, num_heads: 12, "
     "max_sequence_length: 1024"),
    ("GPT-2 XL, 1.6B", GPT2 + "num_layers: 48, hidden_size: 1600, num_heads: 25, "
     "max_sequence_length: 1024"),
    ("7B, like Llama", LLAMA + "num_layers: 32, hidden_size: 4096, num_heads: 32, ffn_size: 11008, "
     "vocab_size: 32000, max_sequence_length: 2048"),
    ("100 layers, 5.1B", GPT2 + "num_layers: 100, hidden_size: 2048, num_heads: 16, "
     "max_sequence_length: 2048"),
    ("96 layers, 175B", GPT2 + "num_layers: 96, hidden_size: 12288, num_heads: 96, "
     "max_sequence_length: 2048"),
]


class Planner:
    def __init__(self, redspine, folder):
        self.redspine = redspine
        self.config = pathlib.Path(folder) / "run.yaml"

    def plan(self, model, ranks, settings, more=()):
        self.config.write_text(
            "run: {precision: bf16}\nmodel: {" + model + "}\ndata: {train: [{path: none}]}\n"
            "train: {steps: 1000}\ncheckpoint: {async: false}\n")
        words = [self.redspine, "plan", "--config", self.config, "--ranks", str(ranks), "--json",
                 "--machine", ROOT / "configs/machines/h100-8.yaml", *more, "--set", *settings]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else done.stdout.strip()


def published(planner):
    print("| | GPUs | published MFU | predicted MFU | predicted GiB |\n|---|---|---|---|---|")
    for who, model, ranks, settings, mfu in ROWS:
        line = planner.plan(model, ranks, settings)
        if isinstance(line, str):
            print(f"| {who} | {ranks} | {mfu}% | {line} | |")
            continue
        print("| {} | {} | {}% | {:.0f}% | {:.0f}{} |".format(
            who, ranks, mfu, 100 * line["predicted"]["mfu"], line["device_bytes"] / 2**30,
            "" if line["fits"] else ", does not fit"))


def models(planner):
    print("\n| | GPUs | fastest layout | GiB | tokens/s | MFU |\n|---|---|---|---|---|---|")
    for name, model in MODELS:
        for ranks in (1, 8, 64, 512, 4096):
            line = planner.plan(model, ranks, ["batch.global_batch_size=4096"], ["--search"])
            if isinstance(line, str) or not line["layouts"]:
                print(f"| {name} | {ranks} | none fits | | | |")
                continue
            best = line["layouts"][0]
            options = [best["precision"], f"{best['data']} x {best['tensor']}", f"{best['micro_batch_size']} at once"]
            if best["recompute"] != "none":
                options.append(f"recompute {best['recompute']}")
            if best["optimizer"] != "replicated":
                options.append(best["optimizer"])
            if best["sequence"]:
                options.append("sequence")
            predicted = best["predicted"]
            print("| {} | {} | {} | {:.0f} | {:,.0f} | {:.0f}% |".format(
                name, ranks, ", ".join(options), best["device_bytes"] / 2**30,
                predicted["tokens_per_second"], 100 * predicted["mfu"]))


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        planner = Planner(sys.argv[1], folder)
        published(planner)
        models(planner)


if __name__ == "__main__":
    main()
