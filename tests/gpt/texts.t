# The texts that train_gpt reads, as characters, as byte pairs and as JSON lines

needs: utf8proc

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ pairs() { train_gpt --config tiny.toml --batch-size 2 --max-steps 2 --tokenizer "$WEFT"/tests/golden/byte_pair --out "$@"; }
  $ pairs run
  device  cpu …
  data    text: 1051 tokens, 263 for validation, of 50257
  model   4 layers, 128 wide, 4 heads, 7228288 parameters, weights random, f32
  run     run
  …
  … rank 0: stopped by --max-steps after step 2; continue with: train_gpt --config run/config.toml --max-steps 0 --resume auto --out run
  $ same run/model/merges.txt "$WEFT"/tests/golden/byte_pair/merges.txt; jq .eos_token_id run/model/config.json
  50256

JSON lines train as their texts do with the token of an end between them.

  $ for i in {0..99}; do printf 'the cat sits.\n"%s<|endoftext|>' $i; done > plain
  $ for i in {0..99}; do jq -nc --arg i $i '{id: $i, text: "the cat sits.\n\"\($i)"}'; done > lines.jsonl
  $ pairs plain_run --data plain > log 2>&1 && pairs json_run --data lines.jsonl > log 2>&1 && same $(weights plain_run) $(weights json_run)
  $ train_gpt --config tiny.toml --data lines.jsonl --batch-size 2 --max-steps 1 --out characters 2> log
  device  cpu …
  data    lines.jsonl: 1432 tokens, 358 for validation, of 21
  model   4 layers, 128 wide, 4 heads, 798080 parameters, weights random, f32
  run     characters
  $ sed 's/^/ /' lines.jsonl > indented.jsonl; train_gpt --config tiny.toml --data indented.jsonl --batch-size 2 --dry-run --out other | grep ^data
  data    indented.jsonl: 1432 tokens, 358 for validation, of 21
  $ echo '{"messages": []}' >> lines.jsonl; train_gpt --config tiny.toml --data lines.jsonl --batch-size 4 --out wrong
  train_gpt: error: --data lines.jsonl: expected JSON lines of objects with a "text", got another line 101: {"messages": []}
  [1]
