# Ranks that have a model's layers one after another train as one process

needs: ranks

The embedding lies on both ends of the pipeline. `on` trains five steps and compares, `rest` trains the other steps on another grid (tiny.sh).

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ train_gpt --config tiny.toml --batch-size 4 --max-steps 5 --out one > log 2>&1
  $ on 2 stages --batch-size 4 --pipeline 2
  $ on 2 interleaved --batch-size 4 --pipeline 2 --chunks 2 --micro-batches 3
  $ on 2 accumulated --batch-size 1 --accumulate 4 --pipeline 2
  $ on 4 four --batch-size 4 --pipeline 4
  $ on 4 stages_data --batch-size 2 --pipeline 2 --chunks 2
  $ on 4 fsdp_stages --batch-size 2 --pipeline 2 --chunks 2 --micro-batches 2 --parallel fsdp --min-num-params 0
  $ on 4 offloaded --batch-size 2 --pipeline 2 --micro-batches 2 --parallel fsdp --min-num-params 0 --fsdp-offload parameters
  $ on 2 ddp --batch-size 2 --parallel ddp

Checkpoints go on on any other grid.

  $ train_gpt --config tiny.toml --batch-size 4 --out whole > log 2>&1
  $ rest 1 stages --batch-size 4
  $ rest 4 four --batch-size 2 --pipeline 2
  $ rest 4 ddp --batch-size 4 --pipeline 4
  $ rest 4 interleaved --batch-size 4 --tensor 4
  $ rest 1 fsdp_stages --batch-size 4
  $ rest 1 offloaded --batch-size 4
  $ rest 4 accumulated --batch-size 2 --tensor 2 --parallel fsdp
