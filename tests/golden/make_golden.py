#!/usr/bin/env python3
"""Writes the golden values that golden_test.cpp compares Redspine against.

How to run (only to change the cases; the tests need the written files and no Python):

    apt-get install python3-torch python3-numpy python3-venv
    python3 -m venv --system-site-packages .venv
    .venv/bin/pip install 'transformers==4.40.*' safetensors
    .venv/bin/python tests/golden/make_golden.py

The reference is transformers' GPT2LMHeadModel and LlamaForCausalLM with torch's autograd and AdamW.
Everything is computed in float64 from float32 weights and stored as float32, so that the reference
has no rounding of its own to speak of. Weights come from numpy's frozen MT19937 stream and do not
depend on the torch version.

A case NAME is two files:
  NAME.json         the configuration (keys of the YAML file's `model:`), the optimizer, and for
                    each of the ten steps learning rate, loss, and gradient norm before clipping
  NAME.safetensors  tokens, targets   int32 [step][B][T]
                    logits            [B][T][V] of the first batch, before any step
                    initial.PARAMETER, gradient.PARAMETER (first batch, unclipped),
                    final.PARAMETER (after ten steps)
Parameters have Redspine's names and orientation: Linear weights [out, in], q, k, v apart.
"""
import copy
import itertools
import json
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama

import make_tables
import rope_reference
from parameter_names import in_our_names

FOLDER = pathlib.Path(__file__).parent
STEPS = 10
OPTIMIZER = {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1}

GPT2 = dict(family="gpt2", num_layers=2, hidden_size=32, num_heads=4, num_kv_heads=4, ffn_size=80,
            vocab_size=257, max_sequence_length=24, position="learned", norm="layernorm",
            norm_epsilon=1e-5, activation="gelu_tanh", bias=True, tie_embeddings=True, dropout=0.0,
            rope=dict(theta=10000.0, scaling="none", factor=1.0, original_length=1024))
LLAMA = dict(family="llama", num_layers=2, hidden_size=32, num_heads=4, num_kv_heads=4, ffn_size=44,
             vocab_size=61, max_sequence_length=32, position="rope", norm="rmsnorm",
             norm_epsilon=1e-5, activation="swiglu", bias=False, tie_embeddings=False, dropout=0.0,
             rope=dict(theta=10000.0, scaling="none", factor=1.0, original_length=1024))


def extended(scaling, original_length, num_kv_heads):
    # A small theta, so that every pair turns visibly within a short test sequence.
    return LLAMA | dict(
        num_kv_heads=num_kv_heads, max_sequence_length=4 * original_length,
        rope=dict(theta=500.0, scaling=scaling, factor=4.0, original_length=original_length))


# name, model, batch shape [B, T], clipping norm (0 = off)
CASES = [
    ("gpt2_tied", GPT2, (2, 24), 1.0),
    ("gpt2_untied_exact_gelu",
     GPT2 | dict(activation="gelu", tie_embeddings=False, vocab_size=64, norm_epsilon=1e-3,
                 num_layers=3, ffn_size=48), (3, 16), 0.0),
    ("llama_untied", LLAMA | dict(num_layers=3, norm_epsilon=1e-6), (2, 24), 1.0),
    ("llama_grouped_tied",
     LLAMA | dict(num_kv_heads=2, tie_embeddings=True, norm_epsilon=1e-3), (3, 16), 0.0),
    ("llama_linear", extended("linear", 32, num_kv_heads=4), (2, 20), 0.0),
    ("llama_ntk", extended("ntk", 32, num_kv_heads=2), (2, 20), 1.0),
    ("llama_yarn", extended("yarn", 512, num_kv_heads=1), (2, 20), 7.0),  # clips some steps only
    ("llama_llama3", extended("llama3", 96, num_kv_heads=4), (2, 20), 0.0),
]


class DoubleTorch:
    """The torch module, but float32 is float64: modeling_llama forces norms and softmax to fp32."""

    float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


modeling_llama.torch = DoubleTorch()


class ReferenceRotary(torch.nn.Module):
    """Stands in for transformers' module: all scaling kinds, and angles in float64."""

    def __init__(self, config, head_size):
        super().__init__()
        self.config, self.head_size = config, head_size

    def forward(self, x, position_ids):
        cos, sin = rope_reference.tables(self.config, self.head_size, position_ids[0].numpy())
        twice = lambda half: torch.from_numpy(np.concatenate([half, half], axis=-1))[None]
        return twice(cos), twice(sin)


def build(model):
    """The transformers model in float64, with its own rotary module."""
    if model["family"] == "gpt2":
        config = GPT2Config(
            vocab_size=model["vocab_size"], n_positions=model["max_sequence_length"],
            n_embd=model["hidden_size"], n_layer=model["num_layers"], n_head=model["num_heads"],
            n_inner=model["ffn_size"], layer_norm_epsilon=model["norm_epsilon"],
            activation_function={"gelu_tanh": "gelu_new", "gelu": "gelu"}[model["activation"]],
            tie_word_embeddings=model["tie_embeddings"], bos_token_id=0, eos_token_id=0,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
        return GPT2LMHeadModel(config).double().train()
    scaling = model["rope"]["scaling"]
    theta = model["rope"]["theta"]
    if scaling == "ntk":  # transformers' "dynamic" grows with the sequence; this one is fixed
        head_size = model["hidden_size"] // model["num_heads"]
        theta *= model["rope"]["factor"] ** (head_size / (head_size - 2))
    native = {"type": "linear", "factor": model["rope"]["factor"]} if scaling == "linear" else None
    config = LlamaConfig(
        vocab_size=model["vocab_size"], hidden_size=model["hidden_size"],
        intermediate_size=model["ffn_size"], num_hidden_layers=model["num_layers"],
        num_attention_heads=model["num_heads"], num_key_value_heads=model["num_kv_heads"],
        max_position_embeddings=model["max_sequence_length"], rms_norm_eps=model["norm_epsilon"],
        rope_theta=theta, rope_scaling=native, hidden_act="silu", bos_token_id=0, eos_token_id=0,
        tie_word_embeddings=model["tie_embeddings"])
    return LlamaForCausalLM(config).double().train()


def use_reference_rotary(network, model):
    for layer in network.model.layers:
        layer.self_attn.rotary_emb = ReferenceRotary(
            model["rope"], model["hidden_size"] // model["num_heads"])


def randomize(parameters, random):
    """Every parameter gets values that matter: norm weights off 1, biases off 0, sharp attention."""
    for name, tensor in parameters.items():
        values = random.standard_normal(tuple(tensor.shape))
        if "norm" in name and name.endswith("weight"):
            values = 1.0 + 0.1 * values
        elif name.endswith("bias"):
            values *= 0.1
        elif name.split(".")[0] in ("embedding", "position", "head") or "query" in name \
                or "key" in name:
            values *= 0.3
        else:
            values *= tensor.shape[1] ** -0.5
        tensor.copy_(torch.from_numpy(values.astype(np.float32).astype(np.float64)))


def forward(network, tokens):
    return network.lm_head(network.base_model(tokens)[0])  # model(...) would round logits to fp32


def loss_of(network, tokens, targets):
    return F.cross_entropy(forward(network, tokens).flatten(0, 1), targets.flatten())


def check_gradients(parameters, gradients, loss, random):
    """Each tensor's gradient along a random direction, against central differences of the loss."""
    for name, tensor in parameters.items():
        direction = torch.from_numpy(random.standard_normal(tuple(tensor.shape)))
        original, h = tensor.clone(), 1e-6
        with torch.no_grad():
            above = (tensor.copy_(original + h * direction), loss())[1]
            below = (tensor.copy_(original - h * direction), loss())[1]
            tensor.copy_(original)
        measured = float(above - below) / (2 * h)
        claimed = float((gradients[name] * direction).sum())
        assert abs(measured - claimed) < 1e-8 + 1e-7 * abs(measured), (name, measured, claimed)


def train(network, tokens, targets, max_norm, noise=None):
    """STEPS steps of AdamW, in place; returns their records. `noise` stands in for rounding."""
    matrices = [p for p in network.parameters() if p.dim() >= 2]
    vectors = [p for p in network.parameters() if p.dim() < 2]
    adamw = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": OPTIMIZER["weight_decay"]},
         {"params": vectors, "weight_decay": 0.0}],
        betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]), eps=OPTIMIZER["epsilon"])
    steps = []
    for step in range(STEPS):
        adamw.zero_grad()
        loss = loss_of(network, tokens[step], targets[step])
        loss.backward()
        if noise is not None:
            for gradient in (p.grad for p in network.parameters()):
                size = 5e-7 * gradient.pow(2).mean().sqrt()
                exactly_zero = gradient.abs() < 1e-14  # tokens not seen, and GPT-2's key bias
                values = torch.from_numpy(noise.standard_normal(tuple(gradient.shape)))
                gradient.add_(values * size * ~exactly_zero)
        norm = torch.nn.utils.clip_grad_norm_(network.parameters(), max_norm or float("inf"))
        rate = 1e-3 * ((step + 1) / 4 if step < 4 else 1 - 0.1 * (step - 3))
        for group in adamw.param_groups:
            group["lr"] = rate
        adamw.step()
        steps.append({"learning_rate": rate, "loss": loss.item(), "gradient_norm": norm.item()})
    return steps


def make_case(name, model, shape, max_norm, seed):
    """Writes the case; returns False where float32 could not reproduce its training.

    AdamW's first steps are about learning_rate * sign(gradient). Where an element's first gradient
    happens to be near zero, rounding decides the step, and no tolerance is fair to that.
    """
    random = np.random.RandomState(seed)
    network = build(model)
    parameters = in_our_names(network, model)
    randomize(parameters, random)
    texts = random.randint(0, model["vocab_size"], (STEPS, shape[0], shape[1] + 1))
    tokens, targets = torch.from_numpy(texts[..., :-1]), torch.from_numpy(texts[..., 1:])
    if model["family"] == "llama":
        native = forward(network, tokens[0]).detach()
        use_reference_rotary(network, model)
        if model["rope"]["scaling"] in ("none", "linear", "ntk"):  # those transformers 4.40 has
            assert torch.allclose(forward(network, tokens[0]), native, rtol=0, atol=1e-5), name

    def stored(prefix, tensors):
        return {f"{prefix}.{key}": value.detach().numpy().astype(np.float32).copy()
                for key, value in tensors.items()}

    loss_of_first = lambda: loss_of(network, tokens[0], targets[0])
    loss_of_first().backward()
    gradients = in_our_names(network, model, lambda parameter: parameter.grad)
    check_gradients(parameters, gradients, loss_of_first, random)
    file = {"tokens": texts[..., :-1].astype(np.int32), "targets": texts[..., 1:].astype(np.int32),
            "logits": forward(network, tokens[0]).detach().numpy().astype(np.float32)}
    file |= stored("initial", parameters) | stored("gradient", gradients)

    untrained = copy.deepcopy(network)
    steps = train(network, tokens, targets, max_norm)
    for _ in range(8):
        disturbed = copy.deepcopy(untrained)
        train(disturbed, tokens, targets, max_norm, noise=random)
        for key, value in in_our_names(disturbed, model).items():
            if (value - parameters[key]).norm() > 3e-6 * value.norm():
                return False
    file |= stored("final", parameters)

    path = FOLDER / f"{name}.safetensors"
    save_file(file, path)
    path.chmod(0o644)
    record = {"model": model, "optimizer": OPTIMIZER | {"max_gradient_norm": max_norm},
              "steps": steps}
    (FOLDER / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(f"{name} (seed {seed}): loss {steps[0]['loss']:.4f} -> {steps[-1]['loss']:.4f}, norms "
          + " ".join(f"{s['gradient_norm']:.2f}" for s in steps))
    return True


if __name__ == "__main__":
    torch.set_num_threads(1)
    for index, case in enumerate(CASES):
        next(seed for seed in itertools.count(1000 * (index + 1)) if make_case(*case, seed))
    make_tables.make_adamw(FOLDER / "adamw.json")
    make_tables.make_rope(FOLDER / "rope.json")
