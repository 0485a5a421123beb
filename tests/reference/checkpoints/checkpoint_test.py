"""A checkpoint is a model directory of transformers, and an optimizer's state of PyTorch."""

import json
import pathlib
import tempfile
import unittest

import torch
from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM)

import redspine_tool as tool
from redspine_tool import GPT2, LLAMA

MODELS = {
    "gpt2": GPT2,
    "gpt2, untied, exact gelu, another epsilon":
        GPT2 | dict(tie_embeddings=False, activation="gelu", norm_epsilon=1e-3),
    "llama": LLAMA | dict(tie_embeddings=False),
    "llama, tied": LLAMA | dict(tie_embeddings=True),
    "llama, grouped heads": LLAMA | dict(num_kv_heads=2, norm_epsilon=1e-3),
    "llama, one head of keys": LLAMA | dict(num_kv_heads=1, ffn_size=48),
    "llama, interpolated positions":
        LLAMA | dict(rope=dict(theta=500.0, scaling="linear", factor=4.0, original_length=8)),
    "llama, NTK-aware positions":
        LLAMA | dict(rope=dict(theta=500.0, scaling="ntk", factor=4.0, original_length=8)),
}
MAX_DIFFERENCE = 1e-4


def bits(tensor):
    # numpy has no bfloat16.
    return tensor.view(torch.int32 if tensor.dtype == torch.float32 else torch.int16).tolist()


class TestInAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def new_folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def open(self, directory):
        """The model in float32, opened without a word of complaint."""
        model, told = AutoModelForCausalLM.from_pretrained(
            directory, torch_dtype=torch.float32, output_loading_info=True)
        for kind, names in told.items():
            self.assertEqual(list(names), [], kind)
        return model.eval()

    def expect_same_logits(self, model, directory):
        tokens = torch.randint(0, tool.VOCABULARY, (tool.SEQUENCE_LENGTH,),
                               generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            theirs = model(tokens[None]).logits[0]
        ours = tool.logits(directory, tokens)
        self.assertEqual(ours.shape, theirs.shape)
        # Logits that are all alike would agree by themselves.
        self.assertGreater(theirs.std(dim=1).min().item(), 0.1)
        self.assertLess((ours - theirs).abs().max().item(), MAX_DIFFERENCE)

    def expect_bit_equal(self, ours, theirs):
        self.assertEqual(sorted(ours), sorted(theirs))
        for name, tensor in theirs.items():
            self.assertEqual(ours[name].dtype, tensor.dtype, name)
            self.assertEqual(ours[name].shape, tensor.shape, name)
            self.assertEqual(bits(ours[name]), bits(tensor), name)


class OpensInTransformers(TestInAFolder):
    def test_every_model_gives_the_same_logits_at_every_position(self):
        for name, model in MODELS.items():
            with self.subTest(name):
                checkpoint = tool.train(self.new_folder(), model, steps=20)[20]
                self.expect_same_logits(self.open(checkpoint), checkpoint)

    def test_checkpoints_that_several_ranks_wrote(self):
        for model in GPT2, LLAMA:
            with self.subTest(model["family"]):
                checkpoint = tool.train(self.new_folder(), model, steps=20, ranks=2,
                                        parallel=dict(tensor=2))[20]
                self.assertEqual(len(list(checkpoint.glob("model-*.safetensors"))), 2)
                self.expect_same_logits(self.open(checkpoint), checkpoint)

    def test_exported_halves_are_those_of_torch(self):
        checkpoint = tool.train(self.new_folder(), LLAMA, steps=20)[20]
        for name, dtype in ("bf16", torch.bfloat16), ("f16", torch.float16):
            with self.subTest(name):
                output = self.folder / name
                tool.run(tool.REDSPINE, "checkpoint", "export", checkpoint, "--output", output,
                         "--dtype", name)
                self.assertEqual(list(output.glob("optimizer*")), [])
                self.expect_bit_equal(tool.tensors(output),
                                      {key: value.to(dtype)
                                       for key, value in tool.tensors(checkpoint).items()})
                told = json.loads((output / "config.json").read_text())["torch_dtype"]
                self.assertEqual(told, str(dtype).removeprefix("torch."))
                self.expect_same_logits(self.open(output), output)


class ComesFromTransformers(TestInAFolder):
    def written_models(self):
        """Models with larger weights than new ones have, so that their logits tell."""
        shape = dict(vocab_size=tool.VOCABULARY, initializer_range=0.2)
        gpt2 = dict(n_positions=tool.SEQUENCE_LENGTH, n_embd=32, n_layer=2, n_head=4, **shape)
        llama = dict(hidden_size=32, intermediate_size=44, num_hidden_layers=2,
                     num_attention_heads=4, max_position_embeddings=tool.SEQUENCE_LENGTH, **shape)
        torch.manual_seed(1)
        yield "gpt2", GPT2LMHeadModel(GPT2Config(**gpt2))
        yield "gpt2, untied", GPT2LMHeadModel(GPT2Config(**gpt2, tie_word_embeddings=False))
        yield "llama", LlamaForCausalLM(LlamaConfig(**llama))
        yield "llama, grouped, tied", LlamaForCausalLM(
            LlamaConfig(**llama, num_key_value_heads=2, tie_word_embeddings=True))
        yield "llama, interpolated", LlamaForCausalLM(
            LlamaConfig(**llama, rope_scaling=dict(type="linear", factor=4.0)))

    def test_import_and_export_keep_every_bit(self):
        for name, model in self.written_models():
            for shard_size in "1GB", "20KB":
                for dtype in torch.float32, torch.float16, torch.bfloat16:
                    with self.subTest(name, shard_size=shard_size, dtype=dtype):
                        self.expect_kept(model.to(dtype), shard_size)

    def expect_kept(self, model, shard_size):
        folder = self.new_folder()
        model.save_pretrained(folder / "theirs", max_shard_size=shard_size)
        num_files = len(list((folder / "theirs").glob("*.safetensors")))
        self.assertEqual(num_files > 1, shard_size == "20KB")
        tool.run(tool.REDSPINE, "checkpoint", "import", folder / "theirs", "--output",
                 folder / "ours")
        tool.run(tool.REDSPINE, "checkpoint", "export", folder / "ours", "--output",
                 folder / "again")
        theirs = tool.tensors(folder / "theirs")
        self.expect_bit_equal(tool.tensors(folder / "ours"), theirs)
        self.expect_bit_equal(tool.tensors(folder / "again"), theirs)
        opened = self.open(folder / "again")
        self.expect_same_logits(opened, folder / "theirs")
        self.expect_same_logits(opened, folder / "again")
        self.assertEqual((folder / "again/generation_config.json").read_text(),
                         (folder / "theirs/generation_config.json").read_text())


class GoesOnInPyTorch(TestInAFolder):
    """torch's AdamW, given our weights and moments, makes the step that we made next."""

    LAST = 12  # moments of so many steps, then one by either
    SETTINGS = dict(learning_rate=0.003, beta1=0.8, beta2=0.9, epsilon=1e-6, weight_decay=0.1,
                    max_gradient_norm=0.5)

    def test_gpt2(self):
        self.expect_same_step(GPT2)

    def test_gpt2_untied(self):
        self.expect_same_step(GPT2 | dict(tie_embeddings=False))

    def test_llama_of_grouped_heads(self):
        self.expect_same_step(LLAMA | dict(num_kv_heads=2))

    def expect_same_step(self, settings):
        # A batch of the whole file: which samples it holds does not depend on their order.
        num_samples = 8
        checkpoints = tool.train(self.folder, settings, steps=self.LAST + 1,
                                 num_samples=num_samples, optimizer=self.SETTINGS)
        model = self.open(checkpoints[self.LAST]).double().train()
        measured = tool.metrics(self.folder, self.LAST + 1)
        optimizer = self.optimizer_of(model, checkpoints[self.LAST], measured["learning_rate"])

        samples = tool.samples(self.folder)
        self.assertEqual(len(samples), num_samples)
        logits = model(samples[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), samples[:, 1:].flatten())
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(),
                                              self.SETTINGS["max_gradient_norm"])
        self.assertAlmostEqual(measured["loss"] / loss.item(), 1.0, delta=1e-5)
        self.assertAlmostEqual(measured["grad_norm"] / norm.item(), 1.0, delta=1e-4)
        self.assertGreater(norm, self.SETTINGS["max_gradient_norm"], "nothing would be clipped")
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        optimizer.step()
        self.expect_state(model, optimizer, before, checkpoints[self.LAST + 1])

    def optimizer_of(self, model, checkpoint, learning_rate):
        parameters = dict(model.named_parameters())
        decayed = [p for p in parameters.values() if p.dim() > 1]
        others = [p for p in parameters.values() if p.dim() == 1]
        optimizer = torch.optim.AdamW(
            [dict(params=decayed, weight_decay=self.SETTINGS["weight_decay"]),
             dict(params=others, weight_decay=0.0)],
            lr=learning_rate, betas=(self.SETTINGS["beta1"], self.SETTINGS["beta2"]),
            eps=self.SETTINGS["epsilon"])
        moments = tool.tensors(checkpoint, "optimizer")
        self.assertEqual(sorted(moments),
                         sorted(f"{kind}.{name}" for name in parameters
                                for kind in ("exp_avg", "exp_avg_sq")))
        num_updates = json.loads((checkpoint / "training.json").read_text())["num_updates"]
        self.assertEqual(num_updates, self.LAST)
        for name, parameter in parameters.items():
            optimizer.state[parameter] = dict(
                step=torch.tensor(float(num_updates)),
                exp_avg=moments[f"exp_avg.{name}"].double(),
                exp_avg_sq=moments[f"exp_avg_sq.{name}"].double())
        return optimizer

    def expect_state(self, model, optimizer, before, checkpoint):
        weights = tool.tensors(checkpoint)
        moments = tool.tensors(checkpoint, "optimizer")
        for name, parameter in model.named_parameters():
            state = optimizer.state[parameter]
            rows = slice(None)
            if name.endswith("c_attn.bias"):
                # The gradient of a key's bias is zero but for rounding.
                width = parameter.numel() // 3
                rows = torch.cat([torch.arange(width), torch.arange(2 * width, 3 * width)])
            step = (parameter.detach() - before[name])[rows]
            self.assertGreater(step.abs().max().item(), 0.0, name)
            self.expect_close(weights[name][rows] - before[name][rows], step, name)
            for kind in "exp_avg", "exp_avg_sq":
                self.expect_close(moments[f"{kind}.{name}"][rows], state[kind][rows],
                                  f"{kind}.{name}")

    def expect_close(self, ours, theirs, name):
        difference = (ours.double() - theirs).abs().max().item()
        self.assertLess(difference, 1e-3 * theirs.abs().max().item(), name)


if __name__ == "__main__":
    unittest.main()
