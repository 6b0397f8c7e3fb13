#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes byte_level/: small tokenizers with the pipelines of Llama-3, Qwen-2, SmolLM and Mistral-Nemo, and the ids that Hugging Face's tokenizers
(PyPI; 0.23 wrote the files) give to the texts of byte_pair.py and others.

    byte_level.py          # the files
    byte_level.py FOLDER   # the files with 20,000 random texts into FOLDER, for a check by hand:
    WEFT_BYTE_LEVEL=FOLDER build/bin/test_data --gtest_filter='ByteLevel.*'
"""
import json
import pathlib
import random
import re
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CASED = [
    "XMLHttpRequest getHTTPResponse iPhone McDonald ABCs ABC aB Ab AB1c camelCaseWord \u01c5x \u01c5\u01c5 A\u02b0B a\u02b0B",
    "\u4f60A\u597dB AB\u4f60\u597d a\u4f60b \u4f60\u597d A\u4f60 \u4f60a AB\u4f60CD ab\u4f60cd \u0661A\u0662b",
    "\u0301AB \u0301ab \u0301 \u0301\u0301A e\u0301E\u0301 A\u0301B .\u0301A .\u0301 .\u0301a ..\u0301b \u0301.a \u20ddAB",
    "https://a.b/C//d/\n/e //\n\r/ x/ /\n  ./\n'S I'M it'll DON'T don't 'TIS 's",
]
MORE = [
    "It's HE'LL we'Ve I'M you'D 'Re 'tis it'\u017f \u017f's",
    "x  \n\n  y \r\n\r\n\tz\n \n  ",
    "a.b,c!d\u00a0e \u2003f\tg \u200bh __init__ ->next (x) \"q\" #tag!!!\n\n$end",
    "1 12 123 1234 12345678 3.1415 \u00bd\u2167\u00b2 x9y 0x1F 1,000,000 \u0661\u0662\u0663\u0664",
    "Cafe\u0301 A\u030a \u1e9b\u0323 \u212b \uac00\u1100\u1161\u11a8 \u0958 e\u0301\u0323",
    "def f(x):\n    if x > 10:\n        return x ** 2  # 'done'\n\n\nprint(f(12))\r\n",
    "<|begin|>Hi<|end|>\n\n<|end|><|begin|>  e\u0301<|END|> <|end",
]


def shared():
    """TEXTS and random_text() of byte_pair.py, which needs tiktoken."""
    source = (HERE / "byte_pair.py").read_text(encoding="utf-8")
    scope = {"random": random}
    exec(re.search(r"^TEXTS = \[.*?^\]", source, re.M | re.S)[0], scope)
    exec(re.search(r"^def random_text.*?(?=^class)", source, re.M | re.S)[0], scope)
    return scope["TEXTS"], scope["random_text"]


def pipelines():
    def split(pattern):
        return [pre_tokenizers.Split(Regex(pattern), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    yield "llama3", None, split(PATTERN.replace("DIGITS", r"\p{N}{1,3}")), True
    yield "qwen2", normalizers.NFC(), split(PATTERN.replace("DIGITS", r"\p{N}")), False
    yield "smollm", None, [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)], False
    yield "tekken", None, split(TEKKEN), True


def mixed(rng):
    """A text of small and large letters, marks and others, in which the pattern has to step back."""
    return "".join(rng.choice("aBc\u01c5\u02b0\u4f60\u0301\u20dd.'/ \n1\u00e9\u00c9\u0416\u0436") for _ in range(rng.randint(1, 24)))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "byte_level"
    texts, random_text = shared()
    texts = texts + MORE
    rng = random.Random(5)
    tried = texts + [random_text(rng) for _ in range(20000 if len(sys.argv) > 1 else 60)]
    for name, normalizer, cuts, whole in pipelines():
        tokenizer = Tokenizer(models.BPE(ignore_merges=whole))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=256 + 150, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
                                      special_tokens=[AddedToken("<|begin|>", special=True), AddedToken("<|end|>", special=True)])
        tokenizer.train_from_iterator(texts + CASED if name == "tekken" else texts, trainer)
        if name == "llama3":  # a token that no merge makes: its piece is found whole
            vocabulary = json.loads(tokenizer.to_str())
            vocabulary["model"]["vocab"]["\u0120xyzzy"] = len(vocabulary["model"]["vocab"])
            tokenizer = Tokenizer.from_str(json.dumps(vocabulary))
            tokenizer.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])
            tried.append("an xyzzy, xyzzy")
        (folder / name).mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / name / "tokenizer.json"), pretty=False)
        if name == "tekken":
            tried = tried[:len(texts)] + CASED + tried[len(texts):] + [mixed(rng) for _ in range(len(tried) - len(texts))]
        cases = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in tried]
        if not normalizer:
            assert all(tokenizer.decode(case["ids"], skip_special_tokens=False) == case["text"] for case in cases)
        text = json.dumps(cases, ensure_ascii=False, separators=(",", ":"))
        (folder / name / "cases.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
