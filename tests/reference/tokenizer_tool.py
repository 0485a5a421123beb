"""tokenizer_tool from Python, the reference tokenizers, and the texts that both are given.

TOKENIZER_TOOL names the binary, GPT2_RANKS the file gpt2.tiktoken; CTest sets both.
"""

import gzip
import os
import pathlib
import struct
import subprocess
import tempfile

import tiktoken
import tiktoken.load
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

GPT2_RANKS = os.environ.get("GPT2_RANKS", "")
END_OF_TEXT = "<|endoftext|>"

GPT2_PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def gpt2_ranks():
    return tiktoken.load.load_tiktoken_bpe(GPT2_RANKS)


def tiktoken_gpt2():
    import tiktoken_ext.openai_public as public

    ranks = gpt2_ranks()
    return tiktoken.Encoding(
        "gpt2",
        pat_str=public.r50k_pat_str,
        mergeable_ranks=ranks,
        special_tokens={END_OF_TEXT: len(ranks)},
    )


def spelled_bytes():
    """GPT-2's visible character for each byte."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    characters = {byte: chr(byte) for byte in visible}
    characters.update({byte: chr(256 + i) for i, byte in enumerate(others)})
    return characters


def last_merge(ranks, token):
    """The two tokens that the merges before `token` leave of it."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        rank, at = min(
            (ranks.get(parts[i] + parts[i + 1], len(ranks)), i) for i in range(len(parts) - 1)
        )
        assert rank < ranks[token]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def huggingface_gpt2(pattern=None):
    """GPT-2's tables in Hugging Face's tokenizers, with another pattern if there is one."""
    ranks = gpt2_ranks()
    spelled = spelled_bytes()

    def spell(token):
        return "".join(spelled[byte] for byte in token)

    vocab = {spell(token): rank for token, rank in ranks.items()}
    vocab[END_OF_TEXT] = len(ranks)
    merges = [
        tuple(map(spell, last_merge(ranks, token)))
        for token in sorted(ranks, key=ranks.get)
        if len(token) > 1
    ]
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    tokenizer.pre_tokenizer = byte_level
    if pattern is not None:
        split = pre_tokenizers.Split(Regex(pattern), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(END_OF_TEXT, normalized=False)])
    tokenizer.encode_special_tokens = True  # their names in a text are text
    return tokenizer


def random_added_token(random_source, name):
    """An added token that is found in one of all possible ways but one: names that begin with white
    space and take that on their left make `tokenizers` panic where it was taken before."""
    single_word, lstrip, rstrip, normalized, special = random_source.choices([True, False], k=5)
    lstrip = lstrip and not name[0].isspace()
    return AddedToken(
        name,
        single_word=single_word,
        lstrip=lstrip,
        rstrip=rstrip,
        normalized=normalized,
        special=special,
    )


def run_tool(*arguments):
    command = [os.environ["TOKENIZER_TOOL"], *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def write_documents(path, documents):
    with open(path, "wb") as file:
        for document in documents:
            text = document if isinstance(document, bytes) else document.encode()
            file.write(struct.pack("<I", len(text)) + text)


def read_records(path, item_size):
    data = pathlib.Path(path).read_bytes()
    records = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        records.append(data[at + 4 : at + 4 + length * item_size])
        at += 4 + length * item_size
    return records


def encode(tokenizer, documents, *options):
    """Our ids of each document, by the tokenizer in a file."""
    with tempfile.TemporaryDirectory() as folder:
        write_documents(f"{folder}/documents", documents)
        run_tool("encode", tokenizer, f"{folder}/documents", f"{folder}/ids", *options)
        records = read_records(f"{folder}/ids", 4)
    return [list(struct.unpack(f"<{len(record) // 4}i", record)) for record in records]


def round_trip(tokenizer, documents):
    """Each document encoded and decoded by us."""
    with tempfile.TemporaryDirectory() as folder:
        write_documents(f"{folder}/documents", documents)
        run_tool("encode", tokenizer, f"{folder}/documents", f"{folder}/ids")
        run_tool("decode", tokenizer, f"{folder}/ids", f"{folder}/decoded")
        return read_records(f"{folder}/decoded", 1)


def seconds_of(line):
    """Seconds on the clock, and of all threads' CPU time."""
    clock, cpu = map(float, line.split())
    return clock, cpu


def train(vocab_size, documents, path, num_threads=2):
    """Trains our tokenizer, saves it as `path`, and gives its seconds_of()."""
    with tempfile.TemporaryDirectory() as folder:
        write_documents(f"{folder}/documents", documents)
        return seconds_of(run_tool("train", vocab_size, f"{folder}/documents", num_threads, path))


def time_encoding(tokenizer, documents, num_threads, num_repeats):
    """seconds_of() each of several times that our tokenizer encodes all documents."""
    with tempfile.TemporaryDirectory() as folder:
        write_documents(f"{folder}/documents", documents)
        arguments = (tokenizer, f"{folder}/documents", num_threads, num_repeats)
        return [seconds_of(line) for line in run_tool("time", *arguments).splitlines()]


def bible():
    """4.1 MB of English prose, from Debian's bible-kjv: one verse per line."""
    command = r"bible -f Gen1:1-Rev22:21 | sed -E 's/^[0-9]?[A-Za-z]+[0-9]+:[0-9]+ //'"
    return subprocess.run(
        command, shell=True, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ).stdout.decode()


def jargon():
    """1.7 MB of English with code, tables and accents, from Debian's jargon-text."""
    return gzip.open("/usr/share/doc/jargon-text/jargon.txt.gz").read().decode(errors="replace")


def kernel_documentation():
    """20 MB of reStructuredText in several languages, from Debian's linux-doc; a string a file."""
    folder = next(pathlib.Path("/usr/share/doc").glob("linux-doc-[0-9]*/Documentation"))
    texts = []
    for path in sorted(folder.rglob("*.rst*")):
        data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        texts.append(data.decode(errors="replace"))
    return texts
