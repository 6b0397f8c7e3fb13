#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unigram/: small unigram models with the pipelines of XLM-RoBERTa, T5 and DeBERTa-v3, and the ids that Hugging Face's tokenizers (PyPI; 0.23
wrote the files) give to the texts of byte_pair.py and others. PyPI's sentencepiece trains them and has the published map of characters (nmt_nfkc).

    unigram.py          # the files
    unigram.py FOLDER   # the files with 20,000 random texts into FOLDER, for a check by hand:
    WEFT_UNIGRAM=FOLDER build/bin/test_data --gtest_filter='Unigram.*'
"""
import io
import json
import pathlib
import random
import sys

import sentencepiece
from byte_level import shared
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

HERE = pathlib.Path(__file__).parent
MORE = [
    "\u2581x \u2581\u2581 y", "a  b   c", " lead and trail  ", "\u00bd \u2460 \ufb01 \uff21\uff22 \u212b \u30ac\uff76\uff9e", "e\u0301 \u0958 \u1100\u1161\u11a8",
    "<s>Hi</s> <mask> <pad> <unk> </s></s> x<mask>y", "\u4f60\u597d\u4e16\u754c \U00020000 \U0001f9d1\u200d\U0001f680", "tab\tnew\nline\r\n\u2028\u00a0\u3000end", "\u0000\u0001\u00ad\u200b\ufeff\ufffd",
]


def trained(texts, **options):
    """The pieces of a unigram model over texts, and sentencepiece's map of characters."""
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=file, model_type="unigram", hard_vocab_limit=False,
                                             normalization_rule_name="nmt_nfkc", minloglevel=2, num_threads=1, **options)
    model = sentencepiece_model_pb2.ModelProto.FromString(file.getvalue())
    return [(piece.piece, piece.score) for piece in model.pieces], model.normalizer_spec.precompiled_charsmap


def pipelines():
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    metaspace = pre_tokenizers.Metaspace("\u2581", "always")
    yield "xlm_roberta", {}, [spaces], [pre_tokenizers.WhitespaceSplit(), metaspace], ["<s>", "<pad>", "</s>", "<unk>"]
    yield "t5", {}, [], [pre_tokenizers.WhitespaceSplit(), metaspace], ["<pad>", "</s>", "<unk>"]
    yield "deberta", {}, [normalizers.Strip(), spaces], [metaspace], ["<pad>", "</s>", "<unk>"]
    yield "bytes", {"byte_fallback": True}, [spaces], [metaspace], ["<unk>", "<s>", "</s>"]


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "unigram"
    texts, random_text = shared()
    texts = texts + MORE
    rng = random.Random(7)
    tried = texts + [random_text(rng) for _ in range(20000 if len(sys.argv) > 1 else 60)]
    lines = [line for text in texts * 3 for line in text.replace("\0", "").splitlines() if line.strip()]
    for name, options, others, cuts, special in pipelines():
        pieces, characters = trained(lines, vocab_size=600, character_coverage=0.98, **options)
        scores = [(text, 0.0) for text in special] + [piece for piece in pieces if piece[0] not in ("<s>", "</s>", "<unk>")]
        tokenizer = Tokenizer(models.Unigram(scores, special.index("<unk>"), options.get("byte_fallback", False)))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(characters), *others])
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cuts)
        tokenizer.decoder = decoders.Metaspace()
        tokenizer.add_special_tokens(special + ["<mask>"])
        (folder / name).mkdir(parents=True, exist_ok=True)
        file = json.loads(tokenizer.to_str())
        one = file["normalizer"]["normalizers"][0]  # 300 KiB that all have: once, in a file beside
        (folder / "characters").write_text(one.pop("precompiled_charsmap"), encoding="utf-8")
        (folder / name / "tokenizer.json").write_text(json.dumps(file, separators=(",", ":")), encoding="utf-8")
        cases = [{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in tried]
        (folder / name / "cases.json").write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


main()
