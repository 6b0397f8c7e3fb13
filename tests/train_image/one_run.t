# Two runs that are given one folder; signals.

  $ small="--data random:64x8x8x3 --model resnet8 --device cpu --workers 0 --backend gloo"
  $ train() { train_image $small --batch-size 16 --out run "$@"; }
  $ begin() { (exec train_image $small --batch-size 16 --epochs 1000000 --out run) > first.log 2>&1 & first=$!; until_true test -s run/metrics.jsonl -a -e run/checkpoint_last.safetensors; }

The second one waits for 10 s, since the first may be about to end, and is refused in one line. The first goes on.

  $ begin; cp run/config.toml config.toml; train --batch-size 32 --epochs 1 > log 2>&1
  [1]
  $ tail -n 1 log | sed "s/$first/FIRST/; s/ on $(uname -n),/ on HOST,/"; grep -c 'is in use by' log
  train_image: error: run folder: run is in use by process FIRST on HOST, and was for the 10 s that this run has waited. End that run, or name another folder
  1
  $ train --batch-size 32 --dry-run 2>&1 | tail -n 1
  dry run: would train 10 epochs of 2 steps, 32 images each, sgd at 0.1, schedule cosine, and write run
  $ kill -0 $first; same config.toml run/config.toml

SIGTERM to a run that waits is no failure: exit code 75 says to submit it again.

  $ (exec train_image $small --batch-size 16 --out run) > waits.log 2>&1 & waits=$!; until_true grep -q "'^run '" waits.log; kill -TERM $waits; wait $waits
  [75]
  $ tail -n 1 waits.log
  SIGTERM outside of the training loop: nothing is lost, the next attempt does the rest

A run that is killed keeps nobody out, and one that has ended leaves no lock.

  $ kill -KILL $first; wait $first 2> killed
  [137]
  $ train --resume auto --max-steps 1 2>&1 | grep 'resumed\|error'; ls -A run | grep -c lock
  … rank 0: resumed from run/checkpoint_last.safetensors at epoch …
  0
  [1]

A restart waits for the attempt that is ending.

  $ rm -r run; begin; train --resume auto --max-steps 1 > next.log 2>&1 & next=$!
  $ until_true grep -q "'^run '" next.log; sleep 2; kill -KILL $first; wait $first 2> killed; wait $next && grep resumed next.log
  … rank 0: resumed from run/checkpoint_last.safetensors at epoch …

SIGTERM to a run that trains: it finishes the step, saves, and says how to go on.

  $ rm -r run; begin; kill -TERM $first; wait $first
  [75]
  $ sed -n '/stopped by/,$p' first.log; ls run/checkpoint_last.safetensors; jq .finished run/summary.json
  … rank 0: stopped by SIGTERM after step …; continue with: train_image --config run/config.toml --max-steps 0 --resume auto --out run
  run/checkpoint_last.safetensors
  false
