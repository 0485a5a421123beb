"""Token files written here are megatron-core's and llm.c's, and theirs are read here.

REDSPINE names the binary, MEGATRON_CORE a folder into which the wheel megatron-core was unpacked
(`pip install --no-deps --target`). Needs torch and numpy, of any version.
"""

import importlib
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import types
import unittest

import numpy
import torch

END_OF_TEXT = 256  # of the byte tokenizer


def indexed_dataset():
    """megatron.core.datasets.indexed_dataset without what its packages import beside it."""
    root = pathlib.Path(os.environ["MEGATRON_CORE"]) / "megatron"
    folders = {"megatron": root, "megatron.core": root / "core"}
    folders["megatron.core.datasets"] = root / "core" / "datasets"
    for name, folder in folders.items():
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    utils = types.ModuleType("megatron.core.utils")
    utils.log_single_rank = lambda *_, **__: None
    sys.modules["megatron.core.utils"] = utils
    return importlib.import_module("megatron.core.datasets.indexed_dataset")


megatron = indexed_dataset()


def redspine(*words):
    run = subprocess.run(
        [os.environ["REDSPINE"], *map(str, words)], capture_output=True, text=True, check=False
    )
    if run.returncode != 0:
        raise AssertionError(f"redspine {words} gave {run.returncode}: {run.stderr}")
    return run.stdout


def documents(count):
    """Texts of all lengths, empty ones and one of several batches among them."""
    source = random.Random(1)
    texts = ["", "\0\n", "é" * 400_000]
    for _ in range(count):
        size = source.randrange(200)
        texts.append("".join(chr(source.randrange(32, 0x2FF)) for _ in range(size)))
    return texts


def tokens_of(text):
    return [*text.encode(), END_OF_TEXT]


def wide_tokenizer():
    """One token per byte, with END_OF_TEXT far beyond 16 bits."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    spelled = {byte: chr(byte) for byte in visible}
    spelled.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return {
        "version": "1.0",
        "added_tokens": [{"id": 100_000, "content": "<|endoftext|>", "special": True}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {spelled[byte]: byte for byte in range(256)},
            "merges": [],
        },
    }


class MegatronTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)

    def write_jsonl(self, texts):
        path = self.folder / "texts.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        return path

    def test_opens_the_pairs_that_are_written_here(self):
        texts = documents(3000)
        path = self.write_jsonl(texts)
        redspine("tokenize", path, "--output", self.folder / "narrow")
        (self.folder / "tokenizer.json").write_text(json.dumps(wide_tokenizer()))
        redspine(
            "tokenize", path, "--output", self.folder / "wide",
            "--tokenizer", self.folder / "tokenizer.json",
        )  # fmt: skip
        for name, dtype, end in [("narrow", numpy.uint16, 256), ("wide", numpy.int32, 100_000)]:
            dataset = megatron.IndexedDataset(str(self.folder / name))
            self.assertEqual(dataset.index.dtype, dtype)
            self.assertEqual(len(dataset), len(texts))
            self.assertEqual(list(dataset.document_indices), list(range(len(texts) + 1)))
            for text, sequence in zip(texts, dataset):
                self.assertEqual(list(sequence), [*text.encode(), end])

    def write_theirs(self, texts, dtype):
        """A pair by their builder, with each document in several sequences."""
        prefix = self.folder / "theirs"
        builder = megatron.IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype)
        for text in texts:
            tokens = tokens_of(text)
            half = len(tokens) // 2
            lengths = [half, len(tokens) - half] if half else [len(tokens)]
            builder.add_document(torch.tensor(tokens), lengths)
        builder.finalize(f"{prefix}.idx")
        return prefix

    def test_writes_pairs_that_train_here(self):
        source = random.Random(2)
        texts = ["".join(source.choices("abc de", k=source.randrange(200))) for _ in range(300)]
        for dtype in [numpy.uint16, numpy.int32, numpy.int64]:
            prefix = self.write_theirs(texts, dtype)
            redspine("tokenize", "--verify", prefix, "--vocab-size", 257)
            name = numpy.dtype(dtype).name
            config = self.folder / f"{name}.yaml"
            config.write_text(f"""
run: {{name: {name}, output_dir: {self.folder}/runs}}
model: {{num_layers: 1, hidden_size: 16, num_heads: 2, vocab_size: 257, max_sequence_length: 64}}
data: {{train: [{{path: {prefix}}}]}}
batch: {{global_batch_size: 8, micro_batch_size: 8}}
schedule: {{warmup_steps: 0}}
train: {{steps: 3}}
""")
            redspine("train", "--config", config)
            lines = (self.folder / "runs" / name / "metrics.jsonl").read_text().splitlines()
            steps = [line for line in map(json.loads, lines) if line["kind"] == "train"]
            for step in [1, 2, 3]:
                trace = redspine("trace", "--config", config, "--step", step)
                self.assertIn(f"batch_hash {steps[step - 1]['batch_hash']}", trace)
                self.check_trace(trace, texts)

    def check_trace(self, trace, texts):
        """Each "document D, its tokens A to B of N" is what the builder was given."""
        found = 0
        for line in trace.splitlines():
            if not line.startswith("  document "):
                continue
            head, _, shown = line.partition(": ")
            words = head.replace(",", "").split()
            number, begin, end, size = (int(words[i]) for i in (1, 4, 6, 8))
            tokens = tokens_of(texts[number])
            self.assertEqual(size, len(tokens))
            part = bytes(token for token in tokens[begin : end + 1] if token != END_OF_TEXT)
            self.assertEqual(shown.replace("<|endoftext|>", ""), f'"{part.decode()}"')
            found += 1
        self.assertGreater(found, 0)

    def test_shards_of_llmc_are_as_its_header_says(self):
        texts = documents(500)
        path = self.write_jsonl(texts)
        redspine(
            "tokenize", path, "--output", self.folder / "shard", "--output-format", "llmc",
            "--shard-tokens", 100_000,
        )  # fmt: skip
        expected = [token for text in texts for token in tokens_of(text)]
        tokens = []
        shards = sorted(self.folder.glob("shard_*.bin"))
        self.assertEqual(len(shards), -(-len(expected) // 100_000))
        for shard in shards:
            content = shard.read_bytes()
            header = struct.unpack("<256i", content[:1024])
            self.assertEqual(header[:2], (20240520, 1))
            self.assertEqual(set(header[3:]), {0})
            ids = struct.unpack(f"<{header[2]}H", content[1024:])
            tokens.extend(ids)
        self.assertEqual(tokens, expected)


if __name__ == "__main__":
    unittest.main()
