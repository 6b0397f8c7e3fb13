# Packed rows train the same on every grid

needs: ranks

  $ . "$WEFT"/tests/gpt/chat.sh; mv tune.toml tiny.toml
  $ train_gpt --config tiny.toml --batch-size 4 --max-steps 5 --out one > log 2>&1
  $ on 2 ddp --batch-size 2 --parallel ddp
  $ on 2 fsdp --batch-size 2 --parallel fsdp --min-num-params 0 --recompute
  $ on 2 stages --batch-size 4 --pipeline 2 --chunks 2
  $ on 4 fsdp_stages --batch-size 2 --pipeline 2 --parallel fsdp

So do those of a GPT, whose layers divide.

  $ jq -cR '{text: .}' text > text.jsonl; sed -i 's/^data.*/data = "text.jsonl"/; s/llama/gpt/; /^weights/d' tiny.toml; echo 'rows = "packed"' >> tiny.toml
  $ train_gpt --config tiny.toml --batch-size 4 --max-steps 5 --overwrite --out one > log 2>&1
  $ on 2 parts --batch-size 4 --tensor 2
  $ on 4 tokens_stages --batch-size 4 --tensor 2 --pipeline 2 --sequence
