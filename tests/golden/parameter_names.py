"""Which part of which transformers parameter is which of Redspine's."""


def in_our_names(network, model, source=lambda parameter: parameter.detach()):
    """Redspine's name -> a view of the transformers tensor, in Redspine's orientation [out, in].

    `source` turns a parameter into the tensor wanted: its value, or its gradient.
    """
    found = {name: source(parameter) for name, parameter in network.named_parameters()}
    result = {}
    if model["family"] == "gpt2":
        result["embedding.weight"] = found["transformer.wte.weight"]
        result["position.weight"] = found["transformer.wpe.weight"]
        for n in range(model["num_layers"]):
            theirs, ours = f"transformer.h.{n}.", f"blocks.{n}."
            for kind in ("weight", "bias"):
                # Conv1D keeps [in, out], with q, k and v side by side in the last dim.
                turned = lambda name: found[f"{theirs}{name}.{kind}"].t()  # no-op on vectors
                result[f"{ours}norm1.{kind}"] = found[f"{theirs}ln_1.{kind}"]
                for part, rows in zip(("query", "key", "value"), turned("attn.c_attn").chunk(3)):
                    result[f"{ours}attention.{part}.{kind}"] = rows
                result[f"{ours}attention.output.{kind}"] = turned("attn.c_proj")
                result[f"{ours}norm2.{kind}"] = found[f"{theirs}ln_2.{kind}"]
                result[f"{ours}mlp.up.{kind}"] = turned("mlp.c_fc")
                result[f"{ours}mlp.down.{kind}"] = turned("mlp.c_proj")
        for kind in ("weight", "bias"):
            result[f"final_norm.{kind}"] = found[f"transformer.ln_f.{kind}"]
    else:
        result["embedding.weight"] = found["model.embed_tokens.weight"]
        for n in range(model["num_layers"]):
            theirs, ours = f"model.layers.{n}.", f"blocks.{n}."
            for mine, name in (("norm1", "input_layernorm"),
                               ("attention.query", "self_attn.q_proj"),
                               ("attention.key", "self_attn.k_proj"),
                               ("attention.value", "self_attn.v_proj"),
                               ("attention.output", "self_attn.o_proj"),
                               ("norm2", "post_attention_layernorm"), ("mlp.gate", "mlp.gate_proj"),
                               ("mlp.up", "mlp.up_proj"), ("mlp.down", "mlp.down_proj")):
                result[f"{ours}{mine}.weight"] = found[f"{theirs}{name}.weight"]
        result["final_norm.weight"] = found["model.norm.weight"]
    if not model["tie_embeddings"]:
        result["head.weight"] = found["lm_head.weight"]
    assert sum(t.numel() for t in result.values()) == sum(t.numel() for t in found.values())
    return result
