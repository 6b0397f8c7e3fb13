# Ranks that have parts of each layer train as one process

needs: ranks

`on` trains five steps and compares, `rest` trains the other steps on another grid (tiny.sh).

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ train_gpt --config tiny.toml --batch-size 4 --max-steps 5 --out one > log 2>&1
  $ on 2 parts --batch-size 4 --tensor 2
  $ on 4 parts_accumulated --batch-size 1 --accumulate 2 --tensor 2
  $ on 8 parts_stages --batch-size 2 --tensor 2 --pipeline 2 --micro-batches 2
  $ on 4 fsdp_parts --batch-size 2 --tensor 2 --parallel fsdp --min-num-params 0
  $ on 4 tokens --batch-size 2 --tensor 2 --sequence
  $ on 4 fsdp_tokens --batch-size 2 --tensor 2 --sequence --parallel fsdp --recompute
  $ on 4 fsdp_accumulated --batch-size 1 --accumulate 2 --tensor 2 --parallel fsdp --fsdp-accumulate sharded --recompute --fsdp-offload optimizer
  $ on 8 fsdp_parts_stages --batch-size 2 --tensor 2 --pipeline 2 --micro-batches 2 --parallel fsdp --fsdp-strategy shard_grad_op

  $ on 4 tokens_stages --batch-size 4 --tensor 2 --pipeline 2 --sequence
  $ on 8 fsdp_tokens_stages --batch-size 2 --tensor 2 --pipeline 2 --sequence --micro-batches 2 --parallel fsdp

Four ranks keep 4, 4, 4 and 3 of 15 tokens.

  $ odd() { ranks "$1" train_gpt --config tiny.toml --context 15 --max-steps 5 --batch-size 4 --out "${@:2}" > log 2>&1 || cat log; }
  $ odd 1 odd_one; odd 4 odd --tensor 4 --sequence; equal odd odd_one

Gradients that travel in bf16 do something, but little.

  $ low() { ranks 4 train_gpt --config tiny.toml --batch-size 2 --tensor 2 --grad-compression bf16 --max-steps 5 "$@" > log 2>&1 || cat log; }
  $ low --out bf16; close bf16 one 0.05; distance bf16 one | jq '. > 1e-6'
  true
  $ low --parallel fsdp --precision bf16 --out fsdp_bf16; close fsdp_bf16 one 0.05; distance fsdp_bf16 one | jq '. > 1e-6'
  true

Checkpoints go on on any other grid.

  $ train_gpt --config tiny.toml --batch-size 4 --out whole > log 2>&1
  $ rest 4 parts --batch-size 2 --pipeline 2
  $ rest 2 fsdp_parts --batch-size 4 --pipeline 2
  $ rest 1 parts_stages --batch-size 4

Parts of weights come from a file, which no process holds whole, and go back to one.

  $ ranks 4 train_gpt --config tiny.toml --batch-size 2 --lr 0 --epochs 1 --tensor 2 --parallel fsdp --weights one --out again > log 2>&1
  $ distance again one
  0.0
  $ ranks 3 train_gpt --config tiny.toml --tensor 3 --out none > log 2>&1; sort -u log | grep "train_gpt: error"
  train_gpt: error: --tensor: 4 heads do not divide by 3 (train_gpt --help lists the flags)
