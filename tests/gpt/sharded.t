# Sharded checkpoints of grids go on on other grids, with the bits of whole ones

needs: ranks

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ run() { ranks "$1" train_gpt --config tiny.toml --resume auto --fsdp-checkpoints $kind --out $kind "${@:2}" > log 2>&1 || cat log; }
  $ fsdp="--parallel fsdp --min-num-params 0"
  $ for kind in whole sharded; do
  >   run 4 --batch-size 2 --max-steps 5 $fsdp --tensor 2; cp -r $kind $kind.parts
  >   run 4 --batch-size 1 --max-steps 10 $fsdp
  >   run 1 --batch-size 4 --max-steps 15
  >   run 4 --batch-size 2 --max-steps 20 $fsdp --pipeline 2; cp -r $kind $kind.stages
  >   run 8 --batch-size 2 --max-steps 25 $fsdp --tensor 2 --pipeline 2 --chunks 2
  >   run 2 --batch-size 4 --max-steps 30 --tensor 2
  >   run 2 --batch-size 4 --max-steps 35 --pipeline 2
  >   cmp <(losses whole) <(losses $kind) && same $(weights whole) $(weights $kind)
  > done
  $ losses sharded | wc -l
  15
  $ ls -d {whole,sharded}*/checkpoint_last*
  sharded.parts/checkpoint_last
  sharded.stages/checkpoint_last
  sharded.stages/checkpoint_last.1
  sharded/checkpoint_last
  sharded/checkpoint_last.1
  whole.parts/checkpoint_last.safetensors
  whole.stages/checkpoint_last.1.safetensors
  whole.stages/checkpoint_last.safetensors
  whole/checkpoint_last.1.safetensors
  whole/checkpoint_last.safetensors

A file that a rank needs is damaged: the one before counts. Another model is refused.

  $ printf x | dd of=sharded.stages/checkpoint_last/rank_00001.safetensors bs=1 seek=5000 conv=notrunc 2> /dev/null
  $ out=sharded.stages; ranks 4 train_gpt --config tiny.toml --batch-size 2 --max-steps 16 $fsdp --pipeline 2 --resume auto --out $out > log 2>&1; grep -o "going on from.*\|resumed from .*" log
