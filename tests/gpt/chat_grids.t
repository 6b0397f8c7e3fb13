# Packed rows train the same on every grid

needs: ranks

  $ . "$WEFT"/tests/gpt/chat.sh; mv tune.toml tiny.toml
  $ train_gpt --config tiny.toml --batch-size 4 --max-steps 10 --out one > log 2>&1
  $ on 2 ddp --batch-size 2 --parallel ddp
  $ on 2 fsdp --batch-size 2 --parallel fsdp --min-num-params 0 --recompute
