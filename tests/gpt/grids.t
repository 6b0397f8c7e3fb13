# Ranks that share the data train as one process

needs: ranks

Several ranks see the sequences of one process whose batch is theirs together. `on` trains five steps and compares (tiny.sh).

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ train_gpt --config tiny.toml --batch-size 4 --max-steps 5 --out one > log 2>&1
  $ on 2 ddp --batch-size 2 --parallel ddp

FSDP has the embedding (22 x 128) as a unit of its own, used at both ends of the forward; a unit per module; everything in the root.

  $ on 2 fsdp --batch-size 2 --parallel fsdp --min-num-params 2000
  $ on 2 blocks --batch-size 2 --parallel fsdp --min-num-params 0 --fsdp-strategy shard_grad_op
  $ on 2 root --batch-size 2 --parallel fsdp --min-num-params 100000000
  $ on 2 accumulated --batch-size 1 --accumulate 2 --parallel fsdp --min-num-params 0 --fsdp-accumulate sharded --fsdp-strategy hybrid_shard --fsdp-shard-size 2

Gradients that travel in bf16 do something, but little.

  $ low() { ranks 2 train_gpt --config tiny.toml --batch-size 2 --grad-compression bf16 --max-steps 5 "$@" > log 2>&1 || cat log; }
  $ low --parallel ddp --out ddp_bf16; close ddp_bf16 one 0.05; distance ddp_bf16 one | jq '. > 1e-6'
  true
  $ low --parallel fsdp --precision bf16 --out fsdp_bf16; close fsdp_bf16 one 0.05; distance fsdp_bf16 one | jq '. > 1e-6'
  true

A checkpoint of two ranks goes on in one process, and the other way round.

  $ train_gpt --config tiny.toml --batch-size 4 --out whole > log 2>&1
  $ rest 1 fsdp --batch-size 4
  $ rest 2 one --batch-size 2 --parallel fsdp --min-num-params 2000
