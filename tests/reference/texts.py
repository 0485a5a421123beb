"""Texts on which tokenizers may differ: random ones over all of Unicode, and hard ones by hand."""

import random
import unicodedata

ALL_CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# What Python's Unicode knows; PCRE2, which runs rare patterns, may know as little.
ASSIGNED = [c for c in ALL_CODE_POINTS if unicodedata.category(chr(c)) != "Cn"]

HARD = [
    "",
    " ",
    "I've I'VE you're YOU'RE he'd HE'D it's IT'S we'll WE'LL I'm I'M can't CAN'T 'tis",
    "'s's'S'sS's 'll'LL'lL ''s '''re \u2019s 'ſ 'ſs It'ſ",
    "a  b   c    d\t\te\t \tf \t g",
    "\n\n\n  \n \n\t\n a\r\nb\r\n\r\nc\rd \r\n  \r  e",
    "end \n", "end\n ", "end \n ", "end\n\n\n", "end   ", "\n \n ", " \t\n\r ", "a\n\n b", "!\n\n?\r\r",
    "a\u00a0b \u00a0c\u00a0 d\u00a0\u00a0e", "\u2003x \u2003\u2003y\u3000\u3000z \u202f1\u205f2",
    "\u0085a\u2028b\u2029c\u000bd\u000ce\u001cf\u001dg\u001eh\u001fi", "\u180ea\u200bb\ufeffc\u2060d",
    "e\u0301 \u0301e a\u0308\u0304 Z\u0351\u036b\u0343a\u0334l\u0321g\u0329o",
    "👩\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈 👍🏽 🇩🇪🇫🇷 1\ufe0f\u20e3 ❤\ufe0f",
    "日本語のテキスト。中文文本，没有空格。한국어 텍스트 ㄱㄴㄷ 𠀀𪜶𫝀𰀀𱍐",
    "हिन्दी में कि की कु कू के कै को कौ क्ष ज्ञ বাংলা தமிழ் ไทย ភាសាខ្មែរ မြန်မာ",
    "العربية ١٢٣ فارسی ۴۵۶ עִבְרִית ‏א‎b‏",
    "0 12 123 1234 12345 123456 1,234.56 ½ ⅔ Ⅻ ² ₃ ① ٣٤٥٦ १२३४ 𝟙𝟚𝟛𝟜 a1b22c333 1st",
    "".join(map(chr, range(0x21))), "".join(map(chr, range(0x7F, 0xA1))), "\0\0a\0 \0",
    "İıŞşẞß ǅ ǆ Ω ω ϒ Å K ﬀ ﬆ ʰ ª º", "for(i=0;i<n;++i){a[i]=b[i]+1;}// x_y-z --- ___ === ***",
    "http://example.org/a%20b?c=d&e=f#g user@example.org C:\\dir\\file.txt $HOME ~/.x",
    "<|endoftext|> <|endoftext|>a <|endoftex|> <|im_start|>",
    "a" * 1000, " " * 1000, "\n" * 1000, "ab" * 500, "1" * 1000, "!" * 1000, "é" * 500, "日" * 500,
    "=" * 80 + "\n" + "-" * 79 + " " + "\t" * 33 + "x", "\ufffd\uffff\U0010ffff\ue000",
]  # fmt: skip


def random_texts(count, seed, code_points=None):
    """Half of evenly drawn code points, half of neighbours in script, spaces and punctuation."""
    code_points = code_points or ALL_CODE_POINTS
    rng = random.Random(seed)
    connectors = [" ", " ", "  ", "\n", "\n\n", "\t", " \n ", "'s", "'LL", "'", ".", ", ", "\u00a0", "1"]
    texts = []
    for i in range(count):
        if i % 2 == 0:
            length = rng.randint(1, 30)
            texts.append("".join(chr(rng.choice(code_points)) for _ in range(length)))
            continue
        text = ""
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(code_points) - 64)
            if rng.random() < 0.5:
                at %= 2000
            block = code_points[at : at + 64]
            text += "".join(chr(rng.choice(block)) for _ in range(rng.randint(1, 8)))
            text += rng.choice(connectors)
        texts.append(text)
    return texts


def texts_of(rng, parts, count):
    """Texts that are joined of a few of the parts each."""
    return ["".join(rng.choices(parts, k=rng.randint(1, 12))) for _ in range(count)]


def every_code_point_around(names):
    """Each of the names between two of every code point, alone and beside a space."""
    # Short ones: the time that `tokenizers` take for a name grows with the text before it.
    blocks = [ALL_CODE_POINTS[i : i + 16] for i in range(0, len(ALL_CODE_POINTS), 16)]
    pattern = "".join(f"{{0}}{name} {name}{{0}}" for name in names)
    return ["".join(pattern.format(chr(c)) for c in block) for block in blocks]


def every_code_point():
    """Each code point next to a letter, a digit, a space, punctuation and itself."""
    return [f"a{c} {c}1{c}{c}.{c}\n{c}" for c in map(chr, ALL_CODE_POINTS)]


def random_bytes(count, seed):
    """Bytes that are mostly no UTF-8, among some that are."""
    rng = random.Random(seed)
    parts = [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\x80", b"\x80"]
    parts += [b" ", b"\n", b"a", b"the", "é".encode(), "日".encode(), b"'s", b"\xf4\x90\x80\x80"]
    return [b"".join(rng.choices(parts, k=rng.randint(1, 20))) for _ in range(count)]
