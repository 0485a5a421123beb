"""Our token ids are those of tiktoken and of Hugging Face's tokenizers."""

import base64
import json
import pathlib
import random
import re
import tempfile
import unittest

import tiktoken
import tiktoken_ext.openai_public as public
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers

import texts
import tokenizer_tool as tool

END_OF_TEXT = tool.END_OF_TEXT
NUM_RANDOM_TEXTS = 100_000
NUM_ADDED_TOKEN_CASES = 25

# Of added tokens: parts of one another, of white space, and of GPT-2's vocabulary.
NAMES = ["<x>", "<x", "x>", ">", "x", "the", " the", " ", "  ", "\n", "\u3000", "日本", "é", "_", "a b",
         "Ġthe", "<mask>", "\u0301", "\t<x>", END_OF_TEXT[:5], END_OF_TEXT[5:]]
BESIDE_NAMES = [" ", " ", "\n", "\t", "\u00a0", "\u2003", "\u200b", "a", "Z", "_", "7", "²", "Ⓐ", "é",
                "\u0301", "日", "-", ".", "'s", "<", "\x85", END_OF_TEXT]


def pattern_of(encoding):
    """tiktoken's own spelling, without the download of ranks that comes with it."""
    load = public.load_tiktoken_bpe
    public.load_tiktoken_bpe = lambda *_, **__: {}
    try:
        return encoding()["pat_str"]
    finally:
        public.load_tiktoken_bpe = load


class Comparison(unittest.TestCase):
    """Ours and theirs on the same texts. CTest runs each class below by itself."""

    @classmethod
    def setUpClass(cls):
        cls.folder_object = tempfile.TemporaryDirectory()
        cls.folder = cls.folder_object.name
        cls.tiktoken = tool.tiktoken_gpt2()

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


class TokenizerTest(Comparison):
    """GPT-2's tables under its own pattern."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = texts.random_texts(NUM_RANDOM_TEXTS, seed=1) + texts.HARD
        cls.huggingface = tool.huggingface_gpt2()
        cls.json = cls.saved(cls.huggingface, "gpt2")

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

    def test_vocab_and_merges_as_huggingface(self):
        tables = json.loads(self.huggingface.to_str())["model"]
        folder = pathlib.Path(self.folder) / "gpt2"
        folder.mkdir()
        (folder / "vocab.json").write_text(json.dumps(tables["vocab"]))
        lines = [" ".join(merge) + "\n" for merge in tables["merges"]]
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(lines))
        self.expect_huggingface(folder, self.huggingface, self.random[:20_000])

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


class PatternTest(Comparison):
    """The patterns of other models."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.random = texts.random_texts(NUM_RANDOM_TEXTS, seed=1) + texts.HARD

    def expect_pattern_of_tiktoken(self, name, pattern, documents):
        """GPT-2's tables under the pattern of another encoding."""
        encoding = tiktoken.Encoding(
            name, pat_str=pattern, mergeable_ranks=tool.gpt2_ranks(), special_tokens={}
        )
        path = self.saved(tool.huggingface_gpt2(pattern), name)
        self.expect_tiktoken(path, encoding, documents)

    def test_llama3_pattern_as_huggingface(self):
        tokenizer = tool.huggingface_gpt2(tool.LLAMA3_PATTERN)
        documents = self.random + [tool.jargon(), *tool.kernel_documentation()]
        self.expect_huggingface(self.saved(tokenizer, "llama3"), tokenizer, documents)

    def test_pcre2_pattern_as_huggingface(self):
        tokenizer = tool.huggingface_gpt2(tool.QWEN2_PATTERN)
        documents = texts.random_texts(20_000, 2, texts.ASSIGNED) + texts.HARD + [tool.jargon()]
        self.expect_huggingface(self.saved(tokenizer, "qwen2"), tokenizer, documents)

    def test_cl100k_pattern_as_tiktoken(self):
        documents = self.random + [tool.jargon(), *tool.kernel_documentation()]
        self.expect_pattern_of_tiktoken("cl100k", pattern_of(public.cl100k_base), documents)

    def test_llama3_pattern_as_tiktoken(self):
        self.expect_pattern_of_tiktoken("llama3", tool.LLAMA3_PATTERN, self.random)

    def test_o200k_pattern_as_tiktoken(self):
        documents = texts.random_texts(20_000, 3, texts.ASSIGNED) + texts.HARD + [tool.jargon()]
        self.expect_pattern_of_tiktoken("o200k", pattern_of(public.o200k_base), documents)

    def test_p50k_ranks_as_tiktoken(self):
        ranks = tool.gpt2_ranks()
        ranks.update({b" " * (count + 2): 50257 + count for count in range(24)})
        encoding = tiktoken.Encoding(
            "p50k", pat_str=public.r50k_pat_str, mergeable_ranks=ranks, special_tokens={}
        )
        path = f"{self.folder}/p50k.tiktoken"
        lines = [f"{base64.b64encode(t).decode()} {r}\n" for t, r in ranks.items()]
        pathlib.Path(path).write_text("".join(lines))
        self.expect_tiktoken(path, encoding, self.random[:20_000])


class AddedTokensTest(Comparison):
    """Tokens beside the tables, and what they do to the text around them."""

    def test_added_tokens_as_huggingface(self):
        random_source = random.Random(7)
        for number in range(NUM_ADDED_TOKEN_CASES):
            tokenizer = tool.huggingface_gpt2()
            names = random_source.sample(NAMES, 6)
            tokenizer.add_tokens([tool.random_added_token(random_source, name) for name in names])
            path = self.saved(tokenizer, f"added{number}")
            documents = texts.texts_of(random_source, names + BESIDE_NAMES, 200)
            for option in ("as_text", "as_ids"):
                tokenizer.encode_special_tokens = option == "as_text"
                theirs = [encoding.ids for encoding in tokenizer.encode_batch(documents)]
                ours = tool.encode(path, documents, option)
                for document, our_ids, their_ids in zip(documents, ours, theirs):
                    self.assertEqual(our_ids, their_ids, (number, option, document))

    def test_every_code_point_beside_added_tokens(self):
        tokenizer = tool.huggingface_gpt2()
        options = {"<x>": "single_word", "<l>": "lstrip", "<r>": "rstrip"}
        for name, option in options.items():
            tokenizer.add_tokens([AddedToken(name, normalized=False, **{option: True})])
        documents = texts.every_code_point_around(options)
        self.expect_huggingface(self.saved(tokenizer, "beside"), tokenizer, documents)

    def test_names_of_special_tokens_where_asked(self):
        documents = ["<|endoftext|>", "a<|endoftext|> b<|endoftext|><|endoftext|>\n", "<|endoftext"]
        ours = tool.encode(tool.GPT2_RANKS, documents, "as_ids")
        theirs = [self.tiktoken.encode(text, allowed_special="all") for text in documents]
        self.expect_equal(documents, ours, theirs)


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
