# Files of tokens, as nanoGPT and llm.c leave them

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ train_gpt --config tiny.toml --batch-size 4 --max-steps 1 --out saved > log 2>&1
  $ tokens() { python3 -c 'import array, sys; array.array(sys.argv[1], [i * i % 22 for i in range(int(sys.argv[2]))]).tofile(sys.stdout.buffer)' "$@"; }
  $ mkdir shards; tokens H 1000 > shards/train.bin; tokens H 100 > shards/val.bin; tokens I 1000 > wide.bin
  $ plan() { train_gpt --dry-run --device cpu --model gpt_tiny --context 16 --data "$@"; }
  $ plan shards/train.bin --tokenizer saved
  device  cpu …
  data    shards/train.bin: 900 tokens, 100 for validation, of 22
  model   4 layers, 128 wide, 4 heads, 798208 parameters, weights random, f32
  run     gpt-run
  dry run: would train 10 epochs of 4 steps, 12 sequences of 16 tokens each, lr 0.001, and write gpt-run
  $ plan wide.bin --tokenizer saved | grep ^data
  data    wide.bin: 900 tokens, 100 for validation, of 22
  $ plan shards --tokenizer saved | grep ^data
  data    shards: 1000 tokens, 100 for validation, of 22
  $ plan shards/train.bin
  train_gpt: error: --data shards/train.bin: expected a text, got the numbers of tokens. --tokenizer names the folder of the tokenizer that made them (vocab.json, merges.txt)
  [1]
  $ printf '\5\0\26\0' > shards/val.bin; plan shards --tokenizer saved
  train_gpt: error: --data shards/val.bin: expected tokens below the 22 of the tokenizer, got 22 at position 1
  [1]
  $ rm shards/val.bin; plan shards --tokenizer saved
  train_gpt: error: --data shards: expected a text, a file of tokens, or a folder of train.bin and val.bin, got another folder. `cat shards/*.txt > TEXT` makes one text
  [1]
  $ (printf 'caf\351 '; cat text) > latin1; plan latin1
  train_gpt: error: --data latin1: expected a UTF-8 text, got the byte 233 at position 3 (line 1), where no character begins. `iconv -f LATIN1 -t UTF-8 FILE > TEXT` converts Latin-1
  [1]
