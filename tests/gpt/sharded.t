# Sharded checkpoints of grids go on on other grids, with the bits of whole ones

needs: ranks

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ run() { ranks "$1" train_gpt --config tiny.toml --resume auto --fsdp-checkpoints $kind --out $kind "${@:2}" > log 2>&1 || cat log; }
  $ fsdp="--parallel fsdp --min-num-params 0"
  $ for kind in whole sharded; do
  >   run 4 --batch-size 2 --max-steps 5 $fsdp --tensor 2; cp -r $kind $kind.parts
  >   run 4 --batch-size 1 --max-steps 10 $fsdp
  >   run 4 --batch-size 2 --max-steps 15 $fsdp --pipeline 2; cp -r $kind $kind.stages
  >   run 1 --batch-size 4 --max-steps 20
  >   cmp <(losses whole) <(losses $kind) && same $(weights whole) $(weights $kind)
  > done
  $ ls sharded.{parts,stages}/checkpoint_last/*
  sharded.parts/checkpoint_last/index.json
  sharded.parts/checkpoint_last/rank_00000.safetensors
  sharded.stages/checkpoint_last/index.json
  sharded.stages/checkpoint_last/rank_00000.safetensors
