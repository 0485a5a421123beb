"""Our token ids are those of tiktoken and of Hugging Face's tokenizers."""

import base64
import json
import pathlib
import re
import tempfile
import unittest

import tiktoken
import tiktoken_ext.openai_public as public
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import texts
import tokenizer_tool as tool

NUM_RANDOM_TEXTS = 100_000


def pattern_of(encoding):
    """tiktoken's own spelling, without the download of ranks that comes with it."""
    load = public.load_tiktoken_bpe
    public.load_tiktoken_bpe = lambda *_, **__: {}
    try:
        return encoding()["pat_str"]
    finally:
        public.load_tiktoken_bpe = load


def padded_ranks(num_ranks):
    """GPT-2's ranks and as many that no text has, for formats told by the number of ranks."""
    ranks = tool.gpt2_ranks()
    for rank in range(len(ranks), num_ranks):
        ranks[b"\xff\xfe" + rank.to_bytes(4, "big")] = rank
    return ranks


class TokenizerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder_object = tempfile.TemporaryDirectory()
        cls.folder = cls.folder_object.name
        cls.random = texts.random_texts(NUM_RANDOM_TEXTS, seed=1) + texts.HARD
        cls.tiktoken = tool.tiktoken_gpt2()
        cls.huggingface = tool.huggingface_gpt2()
        cls.json = cls.saved(cls.huggingface, "gpt2")

    @classmethod
    def tearDownClass(cls):
        cls.folder_object.cleanup()

    @classmethod
    def saved(cls, tokenizer, name):
        path = f"{cls.folder}/{name}.json"
        tokenizer.save(path)
        return path

    def expect_equal(self, documents, ours, theirs):
        self.assertEqual(len(ours), len(documents))
        self.assertEqual(len(theirs), len(documents))
        for document, our_ids, their_ids in zip(documents, ours, theirs):
            self.assertEqual(our_ids, their_ids, repr(document[:1000]))

    def expect_tiktoken(self, path, encoding, documents):
        theirs = [encoding.encode_ordinary(document) for document in documents]
        self.expect_equal(documents, tool.encode(path, documents), theirs)

    def expect_huggingface(self, path, tokenizer, documents):
        tokenizer.encode_special_tokens = True
        theirs = [encoding.ids for encoding in tokenizer.encode_batch(documents)]
        self.expect_equal(documents, tool.encode(path, documents), theirs)

    def tiktoken_file(self, ranks):
        path = f"{self.folder}/{len(ranks)}.tiktoken"
        lines = [f"{base64.b64encode(t).decode()} {r}\n" for t, r in ranks.items()]
        pathlib.Path(path).write_text("".join(lines))
        return path

    def test_random_texts_as_tiktoken(self):
        self.expect_tiktoken(tool.GPT2_RANKS, self.tiktoken, self.random)

    def test_random_texts_as_huggingface(self):
        self.expect_huggingface(self.json, self.huggingface, self.random)

    def test_every_code_point_as_tiktoken(self):
        self.expect_tiktoken(tool.GPT2_RANKS, self.tiktoken, texts.every_code_point())

    def test_corpora_as_tiktoken(self):
        documents = [tool.bible(), tool.jargon(), *tool.kernel_documentation()]
        self.expect_tiktoken(tool.GPT2_RANKS, self.tiktoken, documents)

    def test_corpora_as_huggingface(self):
        documents = [tool.bible(), tool.jargon(), *tool.kernel_documentation()]
        self.expect_huggingface(self.json, self.huggingface, documents)

    def test_llama3_pattern_as_huggingface(self):
        tokenizer = tool.huggingface_gpt2(tool.LLAMA3_PATTERN)
        documents = self.random + [tool.jargon(), *tool.kernel_documentation()]
        self.expect_huggingface(self.saved(tokenizer, "llama3"), tokenizer, documents)

    def test_pcre2_pattern_as_huggingface(self):
        tokenizer = tool.huggingface_gpt2(tool.QWEN2_PATTERN)
        documents = texts.random_texts(20_000, 2, texts.ASSIGNED) + texts.HARD + [tool.jargon()]
        self.expect_huggingface(self.saved(tokenizer, "qwen2"), tokenizer, documents)

    def test_cl100k_as_tiktoken(self):
        ranks = padded_ranks(100256)
        encoding = tiktoken.Encoding(
            "cl100k", pat_str=pattern_of(public.cl100k_base), mergeable_ranks=ranks, special_tokens={}
        )
        documents = self.random + [tool.jargon(), *tool.kernel_documentation()]
        self.expect_tiktoken(self.tiktoken_file(ranks), encoding, documents)

    def test_llama3_ranks_as_tiktoken(self):
        ranks = padded_ranks(128000)
        encoding = tiktoken.Encoding(
            "llama3", pat_str=tool.LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens={}
        )
        self.expect_tiktoken(self.tiktoken_file(ranks), encoding, self.random)

    def test_o200k_as_tiktoken(self):
        ranks = padded_ranks(199998)
        encoding = tiktoken.Encoding(
            "o200k", pat_str=pattern_of(public.o200k_base), mergeable_ranks=ranks, special_tokens={}
        )
        documents = texts.random_texts(20_000, 3, texts.ASSIGNED) + texts.HARD + [tool.jargon()]
        self.expect_tiktoken(self.tiktoken_file(ranks), encoding, documents)

    def test_vocab_and_merges_as_huggingface(self):
        tables = json.loads(self.huggingface.to_str())["model"]
        folder = pathlib.Path(self.folder) / "gpt2"
        folder.mkdir()
        (folder / "vocab.json").write_text(json.dumps(tables["vocab"]))
        lines = [" ".join(merge) + "\n" for merge in tables["merges"]]
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(lines))
        self.expect_huggingface(folder, self.huggingface, self.random[:20_000])

    def test_names_of_special_tokens_where_asked(self):
        documents = ["<|endoftext|>", "a<|endoftext|> b<|endoftext|><|endoftext|>\n", "<|endoftext"]
        ours = tool.encode(tool.GPT2_RANKS, documents, "as_ids")
        theirs = [self.tiktoken.encode(text, allowed_special="all") for text in documents]
        self.expect_equal(documents, ours, theirs)

    def test_any_bytes_come_back(self):
        documents = texts.random_bytes(20_000, seed=4)
        self.assertEqual(tool.round_trip(tool.GPT2_RANKS, documents), documents)

    def test_valid_text_between_other_bytes_is_encoded_by_itself(self):
        documents = texts.random_bytes(20_000, seed=5)
        for document, ids in zip(documents, tool.encode(tool.GPT2_RANKS, documents)):
            expected = []
            # Surrogate escapes stand for the bytes that are no UTF-8.
            for part in re.split("([\udc80-\udcff])", document.decode(errors="surrogateescape")):
                if part and "\udc80" <= part[0] <= "\udcff":
                    expected.append(self.tiktoken.encode_single_token(bytes([ord(part) & 0xFF])))
                else:
                    expected += self.tiktoken.encode_ordinary(part)
            self.assertEqual(ids, expected, document)

    def test_decoding_as_tiktoken(self):
        ids = list(range(self.tiktoken.n_vocab))
        self.assertEqual(self.decode(ids), self.tiktoken.decode_bytes(ids))

    def decode(self, ids):
        path = pathlib.Path(self.folder)
        data = b"".join(number.to_bytes(4, "little") for number in [len(ids), *ids])
        (path / "ids").write_bytes(data)
        tool.run_tool("decode", tool.GPT2_RANKS, path / "ids", path / "decoded")
        return tool.read_records(path / "decoded", 1)[0]


class TrainingTest(unittest.TestCase):
    """Training gives the vocabulary and merges of Hugging Face's BpeTrainer, in the same order.

    Both break ties by the smallest pair of ids. Ours puts <|endoftext|> last.
    """

    def expect_equal(self, documents, vocab_size):
        theirs = Tokenizer(models.BPE())
        theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size - 1,
            min_frequency=2,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        theirs.train_from_iterator(documents, trainer)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/tokenizer.json"
            tool.train(vocab_size, documents, path)
            ours = Tokenizer.from_file(path)
            sample = documents[:2000] + texts.random_texts(2000, seed=6)
            ours.encode_special_tokens = True
            their_ids = [encoding.ids for encoding in ours.encode_batch(sample)]
            self.assertEqual(tool.encode(path, sample), their_ids)
            self.assertEqual(ours.decode(their_ids[0]), sample[0])
        our_tables = json.loads(ours.to_str())["model"]
        their_tables = json.loads(theirs.to_str())["model"]
        self.assertEqual(our_tables["merges"], their_tables["merges"])
        vocab = dict(our_tables["vocab"])
        self.assertEqual(vocab.pop(tool.END_OF_TEXT), len(vocab))
        self.assertEqual(vocab, their_tables["vocab"])
        return len(their_tables["merges"])

    def test_bible(self):
        self.assertEqual(self.expect_equal(tool.bible().split("\n"), 4096), 4096 - 257)

    def test_bible_until_no_pair_is_left(self):
        self.assertLess(self.expect_equal([tool.bible()], 50_000), 50_000 - 257)

    def test_jargon(self):
        self.assertEqual(self.expect_equal([tool.jargon()], 20_000), 20_000 - 257)

    def test_kernel_documentation(self):
        self.assertEqual(self.expect_equal(tool.kernel_documentation(), 32_000), 32_000 - 257)


if __name__ == "__main__":
    unittest.main()
