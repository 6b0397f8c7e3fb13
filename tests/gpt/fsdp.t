# FSDP's offloads, recomputation and sharded checkpoints change no bit

needs: ranks

  $ . "$WEFT"/tests/gpt/tiny.sh; echo "dropout = 0.1" >> tiny.toml
  $ train() { train_gpt --config tiny.toml "$@" > log 2>&1 || cat log; }
  $ two() { ranks 2 train_gpt --config tiny.toml --batch-size 2 --parallel fsdp --min-num-params 0 "$@" > log 2>&1 || cat log; }
  $ two --max-steps 20 --out want
  $ bits() { same $(weights "$1") $(weights want) && cmp <(losses "$1") <(losses want); }
  $ two --max-steps 20 --recompute --out recomputed; bits recomputed
  $ two --max-steps 20 --fsdp-offload optimizer --out optimizer; bits optimizer
  $ two --max-steps 20 --fsdp-offload parameters --recompute --fsdp-checkpoints sharded --out parameters; bits parameters

A run whose ranks write one file on each host goes on.

  $ two --max-steps 12 --save-interval 5 --fsdp-checkpoints sharded --out parts
  $ ls -d parts/checkpoint_last*/*
  parts/checkpoint_last.1/index.json
  parts/checkpoint_last.1/rank_00000.safetensors
  parts/checkpoint_last/index.json
  parts/checkpoint_last/rank_00000.safetensors
  $ cp -r parts moved
  $ two --max-steps 20 --save-interval 5 --fsdp-checkpoints sharded --resume auto --out parts
  $ grep -o "at step.*" log; same $(weights parts) $(weights want)
  at step 12

So it does on one rank, into a whole file, which takes the folder's place; and back, on four.

  $ train --batch-size 4 --max-steps 16 --resume auto --out moved; ls -d moved/checkpoint_last{,.safetensors} 2> /dev/null
  moved/checkpoint_last.safetensors
  [2]
  $ ranks 4 train_gpt --config tiny.toml --batch-size 1 --parallel fsdp --max-steps 20 --save-interval 5 --fsdp-checkpoints sharded --resume auto --out moved > log 2>&1
  $ grep -o "at step.*" log; ls -d moved/checkpoint_last{,.safetensors} 2> /dev/null
  at step 16
  moved/checkpoint_last
  [2]

The disk of one rank is full: each rank names it, and the checkpoint before stays.

  $ two --max-steps 5 --fsdp-checkpoints sharded --out full; cp -r full before
  $ ranks 2 bash -c '[ $RANK = 0 ] || { trap "" XFSZ; ulimit -f 1000; }; exec train_gpt --config tiny.toml --batch-size 2 --parallel fsdp --min-num-params 0 --fsdp-checkpoints sharded --resume auto --max-steps 10 --out full' > log 2>&1
  [1]
  $ grep -o "train_gpt: error: .*" log | sort -u
  train_gpt: error: sharded checkpoint: rank 1: expected to write rank_00000.safetensors of full/checkpoint_last, got 'File too large'. An older checkpoint stays as it was
  $ diff -r full/checkpoint_last before/checkpoint_last; ls -A full | grep tmp
  [1]
  $ two --max-steps 6 --resume auto --out full; grep -o "at step.*" log
  at step 5

An output layer of its own is refused. Where ranks read parts of the file, rank 0 compares the two for all.

  $ cp -r want/model untied; python3 - << 'end'
  > import json, struct
  > with open("want/model/model.safetensors", "rb") as file:
  >     header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
  >     data = file.read()
  > table = header["transformer.wte.weight"]
  > begin, end = table["data_offsets"]
  > header["lm_head.weight"] = {**table, "data_offsets": [len(data), len(data) + end - begin]}
  > text = json.dumps(header).encode()
  > with open("untied/model.safetensors", "wb") as file:
  >     file.write(struct.pack("<Q", len(text)) + text + data + data[begin:end - 1] + b"?")
  > end
  $ two --weights untied --out tuned | grep -o 'error: .*' | sort -u; train --weights untied --out tuned | grep -o 'error: .*'
  error: fsdp: rank 0: lm_head.weight differs from transformer.wte.weight: the model's output layer is the token embedding
  error: --weights untied: lm_head.weight differs from transformer.wte.weight: the model's output layer is the token embedding
