"""RoPE frequencies with context extension, in float64 and from the published formulas.

Independent of the trainer on purpose: every kind is written from its source, and positions are
never rounded. All functions return (inverse frequencies [K/2], factor on cos and sin).
"""
import math

import numpy as np


def unscaled(theta, head_size):
    """RoFormer (arXiv 2104.09864): pair i turns by theta^(-2i/K) radians per token."""
    return theta ** (-np.arange(0, head_size, 2, dtype=np.float64) / head_size)


def linear(rope, head_size):
    """Position interpolation (arXiv 2306.15595): positions shrink by the factor."""
    return unscaled(rope["theta"], head_size) / rope["factor"], 1.0


def ntk(rope, head_size):
    """NTK-aware: a larger base keeps the fastest pair and stretches the slowest by the factor."""
    stretch = rope["factor"] ** (head_size / (head_size - 2))
    return unscaled(rope["theta"] * stretch, head_size), 1.0


def yarn(rope, head_size):
    """YaRN (arXiv 2309.00071): interpolate slow pairs, keep fast ones, blend between.

    The blend is linear in the pair's index between two whole indices, as in the authors' code and
    in transformers (the paper's text has it linear in the number of turns); checkpoints of such
    models only open with the same choice. Section 3.4 gives the temperature 0.1 ln(s) + 1.
    """
    keep = unscaled(rope["theta"], head_size)

    def index_that_turns(times):
        ratio = rope["original_length"] / (times * 2 * math.pi)
        return head_size * math.log(ratio) / (2 * math.log(rope["theta"]))

    first = max(math.floor(index_that_turns(rope.get("beta_fast", 32.0))), 0)
    last = min(math.ceil(index_that_turns(rope.get("beta_slow", 1.0))), head_size - 1)
    if first == last:
        last += 0.001
    blend = np.clip((np.arange(head_size // 2) - first) / (last - first), 0.0, 1.0)
    frequencies = keep * (1 - blend) + keep / rope["factor"] * blend
    return frequencies, rope.get("attention_factor", 0.1 * math.log(rope["factor"]) + 1.0)


def llama3(rope, head_size):
    """Llama 3.1's published rule: by wavelength against the original length."""
    low_factor, high_factor = rope.get("low_freq_factor", 1.0), rope.get("high_freq_factor", 4.0)
    frequencies = unscaled(rope["theta"], head_size)
    length = rope["original_length"]
    for i, frequency in enumerate(frequencies):
        wavelength = 2 * math.pi / frequency
        if wavelength > length / low_factor:
            frequencies[i] = frequency / rope["factor"]
        elif wavelength >= length / high_factor:
            smooth = (length / wavelength - low_factor) / (high_factor - low_factor)
            frequencies[i] = (1 - smooth) * frequency / rope["factor"] + smooth * frequency
    return frequencies, 1.0


def frequencies_of(rope, head_size):
    if rope["scaling"] == "none":
        return unscaled(rope["theta"], head_size), 1.0
    return {"linear": linear, "ntk": ntk, "yarn": yarn, "llama3": llama3}[rope["scaling"]](
        rope, head_size
    )


def tables(rope, head_size, positions):
    """cos and sin [positions, K/2], the factor applied."""
    frequencies, factor = frequencies_of(rope, head_size)
    angles = np.outer(np.asarray(positions, dtype=np.float64), frequencies)
    return np.cos(angles) * factor, np.sin(angles) * factor
