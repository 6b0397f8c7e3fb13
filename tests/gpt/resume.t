# A run that goes on has the bits of one that was never stopped

  $ . "$WEFT"/tests/gpt/tiny.sh
  $ run() { train_gpt --config tiny.toml --batch-size 4 --dropout 0.1 --save-interval 10 --out "$@" 2>&1 | sed -n '/resumed\|stopped\|error/p'; }
  $ run whole

It is stopped in its second epoch, and says how it goes on.

  $ run parts --max-steps 32
  … rank 0: stopped by --max-steps after step 32; continue with: train_gpt --config parts/config.toml --max-steps 0 --resume auto --out parts
  $ cp -r parts damaged
  $ run parts --resume auto
  … rank 0: resumed from parts/checkpoint_last.safetensors at step 32
  $ same $(weights parts) $(weights whole); [ $(val_loss parts) = $(val_loss whole) ]

Where the last checkpoint is cut, the one before it serves.

  $ truncate -s $(($(stat -c %s damaged/checkpoint_last.safetensors) / 2)) damaged/checkpoint_last.safetensors
  $ run damaged --resume auto | grep resumed; same $(weights damaged) $(weights whole)
  … rank 0: resumed from damaged/checkpoint_last.1.safetensors at step 30
  $ run parts --resume auto --seed 5
  train_gpt: error: checkpoint parts/checkpoint_last.safetensors was made with other sequences: seed 1337 -> 5
  [1]

So it is in eight bits, where scales are a part of checkpoints, but not of the model.

  $ run() { train_gpt --config tiny.toml --batch-size 4 --precision fp8 --save-interval 10 --out "$@"; }
  $ run whole --overwrite > log 2>&1 && learned whole; tensors whole
  true
  52
  $ run fp8 --max-steps 32 > log 2>&1 && run fp8 --resume auto > log 2>&1
  $ same $(weights fp8) $(weights whole); [ $(val_loss fp8) = $(val_loss whole) ]
  $ run divided --tensor 2
  train_gpt: error: --precision fp8: expected whole blocks on each rank, got --tensor or --pipeline (train_gpt --help lists the flags)
  [2]
