"""Runs redspine on small models, and reads what it writes."""

import json
import os
import pathlib
import subprocess

import numpy as np
import torch
import yaml
from safetensors import safe_open

REDSPINE = os.environ["REDSPINE"]
LOGITS_TOOL = os.environ["LOGITS_TOOL"]
MPIRUN = os.environ["MPIRUN"]

SEQUENCE_LENGTH = 32
VOCABULARY = 101

GPT2 = dict(family="gpt2", num_layers=2, hidden_size=32, num_heads=4, num_kv_heads=4, ffn_size=80,
            vocab_size=VOCABULARY, max_sequence_length=SEQUENCE_LENGTH)
LLAMA = dict(family="llama", num_layers=2, hidden_size=32, num_heads=4, num_kv_heads=4, ffn_size=44,
             vocab_size=VOCABULARY, max_sequence_length=SEQUENCE_LENGTH)


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stderr}"
    return done.stdout


def train(folder, model, steps, num_samples=40, ranks=1, **sections):
    """Trains a model in `folder`, with a checkpoint of every step, and returns the path of each by
    its number. Random tokens that differ in how often they come, so that there is something to
    learn."""
    folder = pathlib.Path(folder)
    random = np.random.default_rng(1)
    tokens = np.minimum(random.geometric(0.05, num_samples * SEQUENCE_LENGTH + 1), VOCABULARY) - 1
    tokens.astype("<u2").tofile(folder / "train.u16")
    config = {
        "run": {"name": "run", "output_dir": str(folder / "runs")},
        "model": model,
        "data": {"train": [{"path": str(folder / "train.u16")}], "format": "raw_u16"},
        "batch": {"global_batch_size": 8, "micro_batch_size": 2},
        "optimizer": {"learning_rate": 0.01},
        "schedule": {"warmup_steps": 2, "decay_steps": 100},
        "train": {"steps": steps},
        "checkpoint": {"interval": 1, "keep": 0},
    }
    for name, section in sections.items():
        config.setdefault(name, {}).update(section)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    run(*([MPIRUN, ranks] if ranks > 1 else []), REDSPINE, "train", "--config",
        folder / "config.yaml")
    checkpoints = folder / "runs/run/checkpoints"
    return {step: checkpoints / f"step_{step:08}" for step in range(1, steps + 1)}


def metrics(folder, step):
    """What was measured in a step."""
    lines = (pathlib.Path(folder) / "runs/run/metrics.jsonl").read_text().splitlines()
    return next(line for line in map(json.loads, lines)
                if line["kind"] == "train" and line["step"] == step)


def samples(folder):
    """All samples of the training file, [sample][SEQUENCE_LENGTH + 1]."""
    tokens = np.fromfile(pathlib.Path(folder) / "train.u16", "<u2").astype(np.int64)
    starts = range(0, len(tokens) - SEQUENCE_LENGTH, SEQUENCE_LENGTH)
    return torch.tensor(np.stack([tokens[i:i + SEQUENCE_LENGTH + 1] for i in starts]))


def logits(directory, tokens):
    """Redspine's logits of one sequence, [token][vocabulary]."""
    done = subprocess.run([LOGITS_TOOL, directory], input=np.asarray(tokens, "<i4").tobytes(),
                          capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return torch.tensor(np.frombuffer(done.stdout, "<f4").reshape(len(tokens), -1).copy())


def tensors(directory, stem="model"):
    """Every tensor of a directory's files, as it is stored."""
    stored = {}
    for path in sorted(pathlib.Path(directory).glob(f"{stem}*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():
                assert name not in stored, f"{name} is there twice"
                stored[name] = file.get_tensor(name)
    return stored
