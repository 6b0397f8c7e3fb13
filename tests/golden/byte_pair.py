#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes byte_pair/: what tiktoken and Hugging Face's tokenizers make of some texts with GPT-2's published vocabulary, and the part of
that vocabulary which these texts can reach, with its own ids.

    byte_pair.py FOLDER                          # has GPT-2's vocab.json and merges.txt; needs PyPI's tiktoken and tokenizers
    byte_pair.py FOLDER FOLDER/cases.json TEXT   # the ids of 20,000 random texts and of a file, for a check by hand:
    WEFT_GPT2_VOCABULARY=FOLDER build/bin/test_data --gtest_filter='BytePair.*'
"""
import json
import pathlib
import random
import sys

import tiktoken
import tokenizers
from tiktoken.load import data_gym_to_mergeable_bpe_ranks

HERE = pathlib.Path(__file__).parent
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

TEXTS = [
    "",
    "Hello, world!",
    "First Citizen:\nBefore we proceed any further, hear me speak.\n\nAll:\nSpeak, speak.\n",
    "I'm sure they'll say it's what we've got; you'd better, I can't. THEY'LL 'tis o'clock 's''s",
    "  two  spaces   three\t\ttabs \n\n\n lines  \n",
    " ",
    "   ",
    "\n\n",
    "1234567890 3.14159 ½ Ⅷ ² x² 10th ١٢٣",
    "naïve Straße Ångström Œuvre ÉCOLE façade ﬁn",
    "Привет, мир! Ελληνικά עברית العربية हिन्दी ไทย",
    "你好，世界。日本語のテキスト 한국어",
    "👍🏽 👨‍👩‍👧 ❤️ 🇩🇪 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈",
    "a\u00a0b\u2003c\u3000d\u200be\u0085f\u2028g\u180eh\x1ci",
    "e\u0301 a\u0308\u0327 \u0378 \ue000 \uffff \ufeffbom \x00\x01\x7f",
    "for (int i = 0; i < n; ++i) { x[i] += 0.5f * y[i]; }  // sum\n\treturn x;",
    "https://example.org/a?b=c&d=%20#e user@host.net $5.00 50% #tag @name ~/.bashrc",
    "antidisestablishmentarianism supercalifragilisticexpialidocious Donaudampfschifffahrtsgesellschaft",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ababababab hahahahaha",
    "<|endoftext|> is text here, <|end and so|>",
    "----- ===== ***** ..... !!!!! ????? ''''' \"\"\"\"\" ````` _____ __init__ a_b-c.d",
    "Hello, world!<|endoftext|><|endoftext|>\n\nAll:\nSpeak <|endoftext|>Speak",
]


def random_text(rng):
    alphabets = ["abcdefghijklmnopqrstuvwxyz", "ABCXYZ", " \n\t\r", "  ", "0123456789", "'stmdlvre", ".,;:!?-_()[]{}<>|\"@#$%&*+=/\\~^`",
                 "éüßñøåæ", "абвгд", "你好世界", "\u00a0\u2003\u3000\u200b", "👍🏽❤️𝔘"]
    text = "".join("".join(rng.choices(rng.choice(alphabets), k=rng.randint(1, 6))) for _ in range(rng.randint(0, 12)))
    return text + "".join(chr(c) for c in rng.choices(range(1, 0x2fff), k=rng.randint(0, 3)))


class Published:
    """Both libraries' GPT-2; an id list is one that they agree on."""

    def __init__(self, folder):
        files = str(folder / "merges.txt"), str(folder / "vocab.json")
        self.tiktoken = tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=data_gym_to_mergeable_bpe_ranks(*files),
                                          special_tokens={"<|endoftext|>": 50256})
        self.tokenizers = tokenizers.ByteLevelBPETokenizer(*reversed(files), add_prefix_space=False)
        self.tokenizers.add_special_tokens(["<|endoftext|>"])
        self.spelled = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)

    def ids(self, text):
        ids = self.tiktoken.encode(text, allowed_special="all")
        assert ids == self.tokenizers.encode(text).ids, text
        assert self.tiktoken.decode_bytes(ids) == text.encode(), text
        return ids

    def visible(self, text):
        """The bytes of the text as GPT-2's files write them."""
        return "".join(piece for piece, _ in self.spelled.pre_tokenize_str(text))


def main():
    folder = pathlib.Path(sys.argv[1])
    published = Published(folder)
    if len(sys.argv) > 2:
        rng = random.Random(1)
        texts = [random_text(rng) for _ in range(20_000)] + [pathlib.Path(sys.argv[3]).read_text(encoding="utf-8")]
        pathlib.Path(sys.argv[2]).write_text(json.dumps([{"text": t, "ids": published.ids(t)} for t in texts]), encoding="utf-8")
        return
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    merges = [line.split() for line in (folder / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]]
    spelled = "\n".join(map(published.visible, TEXTS))
    # Whatever a merge makes stands in a text; all others can never happen there.
    reached = [pair for pair in merges if "".join(pair) in spelled]
    kept = {character for character in vocabulary if len(character) == 1} | {"".join(pair) for pair in reached} | {"<|endoftext|>"}
    out = HERE / "byte_pair"
    out.mkdir(exist_ok=True)
    part = {token: number for token, number in vocabulary.items() if token in kept}
    (out / "vocab.json").write_text(json.dumps(part) + "\n", encoding="utf-8")
    (out / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in reached), encoding="utf-8")
    cases = ",\n".join(json.dumps({"text": text, "ids": published.ids(text)}) for text in TEXTS)
    (out / "cases.json").write_text(f"[\n{cases}\n]\n", encoding="utf-8")
    print(len(kept), "tokens,", len(reached), "merges")


if __name__ == "__main__":
    main()
