"""The references of tables_test.cpp: AdamW on a vector, and RoPE tables; make_golden.py calls it."""
import json

import numpy as np
import torch

import rope_reference


def make_adamw(path):
    """AdamW alone: zero, tiny, huge and changing gradients; epsilon is visible in the tiny one."""
    random = np.random.RandomState(77)
    initial = random.standard_normal(12).astype(np.float32)
    gradients = random.standard_normal((10, 12)).astype(np.float32)
    gradients[:, 0] = 0.0
    gradients[:, 1] *= np.float32(1e-9)
    gradients[:, 2] *= np.float32(1e6)
    gradients[3:, 3] = 0.0  # moments decay, steps go on
    runs = []
    for weight_decay in (0.0, 0.1):
        vector = torch.nn.Parameter(torch.from_numpy(initial.astype(np.float64)))
        adamw = torch.optim.AdamW([vector], lr=1e-2, betas=(0.9, 0.95), eps=1e-8,
                                  weight_decay=weight_decay)
        values = []
        for gradient in gradients:
            vector.grad = torch.from_numpy(gradient.astype(np.float64))
            adamw.step()
            values.append(vector.tolist())
        runs.append({"weight_decay": weight_decay, "values": values})  # [step][element]
    record = {"learning_rate": 1e-2, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8,
              "initial": initial.tolist(), "gradients": gradients.tolist(), "runs": runs}
    path.write_text(json.dumps(record) + "\n")


def make_rope(path):
    """cos and sin tables at the sizes that real models use."""
    positions = [0, 1, 2, 7, 100, 1023, 8191, 32767]
    own = {"yarn": dict(beta_fast=16.0, beta_slow=2.0, attention_factor=1.25),
           "llama3": dict(low_freq_factor=2.0, high_freq_factor=8.0)}
    configs = [(64, dict(theta=10000.0, scaling="none", factor=1.0, original_length=2048))]
    for kind in ("linear", "ntk", "yarn", "llama3"):
        configs.append((64, dict(theta=1e4, scaling=kind, factor=4.0, original_length=2048)))
        configs.append((128, dict(theta=5e5, scaling=kind, factor=8.0, original_length=8192)
                        | own.get(kind, {})))
    # So short a length that the slowest bound lies below the first pair, and none is interpolated.
    configs.append((16, dict(theta=1e4, scaling="yarn", factor=4.0, original_length=1)))
    tables = []
    for head_size, config in configs:
        frequencies, factor = rope_reference.frequencies_of(config, head_size)
        cos, sin = rope_reference.tables(config, head_size, positions)
        rounded = lambda values: [[float(f"{x:.9g}") for x in row] for row in values]
        tables.append({"rope": config, "head_size": head_size, "positions": positions,
                       "inverse_frequencies": frequencies.tolist(), "attention_factor": factor,
                       "cos": rounded(cos), "sin": rounded(sin)})  # [position][pair]
    path.write_text(json.dumps(tables) + "\n")
