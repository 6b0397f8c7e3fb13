# Runs of two phases that stop and go on, bit for bit; steps that are made of several batches.

3 steps an epoch, 60 a phase.

  $ probe() { linear_probe --data random:44x16x16x3 --model vit_tiny4 --image-size 16 --workers 1 --precision f32 -e 20 "$@"; }
  $ until_step() { probe "${@:3}" --resume auto --max-steps "$2" --out "$1" > log 2>&1 && grep -q "stopped by --max-steps after step $2" log || cat log; }
  $ bits() { state $1/checkpoint_last.safetensors | grep -v 'images_per_second \|peak_tensor_bytes '; }  # but for measures of the process

60 and 40 steps are 100, in either phase; kept features change nothing either.

  $ until_step whole 100 -b 16 --cache-features on; bits whole | grep '^phase\|^step '
  phase finetune
  step 100
  $ until_step pieces 40 -b 16 --cache-features on; bits pieces > in_probe; grep '^phase\|^epoch\|^step_in_epoch' in_probe
  phase probe
  epoch 13
  step_in_epoch 1
  $ for step in 60 100; do until_step pieces $step -b 16 --cache-features on; done; diff <(bits whole) <(bits pieces)
  $ for step in 14 40; do until_step off $step -b 16 --cache-features off; done; diff in_probe <(bits off)
  $ for step in 83 100; do until_step off $step -b 16 --cache-features off; done; diff <(bits whole) <(bits off)

A stopped run ends as a whole one: weights, metrics, summary. Its first phase is not run again.

  $ rm -r whole pieces; probe -b 16 -e 2 --out whole > log 2>&1; for step in 2 4 7 11; do until_step pieces $step -b 16 -e 2; done
  $ probe -b 16 -e 2 --resume auto --out pieces 2> log | grep '^0'
  0 finetuning
  0 epoch
  $ same whole/finetuned.safetensors pieces/finetuned.safetensors; same whole/probe.safetensors pieces/probe.safetensors
  $ facts() { jq -cS 'del(.time, .images_per_second)' $1/metrics.jsonl; jq -S 'with_entries(select(.key | test("images_per_second|peak_tensor_bytes") | not))' $1/summary.json; }
  $ diff <(facts whole) <(facts pieces); jq -c '[.finished, .steps]' whole/summary.json
  [true,12]
  $ jq -c 'with_entries(select(.key | test("images_per_second|peak_tensor_bytes"))) | map_values(. > 0)' pieces/summary.json
  {"probe_images_per_second":true,"probe_peak_tensor_bytes":true,"finetune_images_per_second":true,"finetune_peak_tensor_bytes":true}

SIGTERM finishes the step, saves, and says how to go on.

  $ (exec linear_probe --data random:44x16x16x3 --model vit_tiny4 --image-size 16 --workers 1 -b 16 -e 100000 --out run) > log 2>&1 & run=$!
  $ until_true test -e run/checkpoint_last.safetensors; kill -TERM $run; wait $run
  [75]
  $ grep stopped log; jq .finished run/summary.json
  stopped by SIGTERM after step …; continue with: linear_probe --config run/config.toml --max-steps 0 --resume auto --out run
  false

What does not fit is refused.

  $ rm -r run; until_step run 2 -b 16; on() { probe "$@" --resume auto --out run 2>&1 | tail -n 1; }
  $ on -b 8
  linear_probe: error: checkpoint run/checkpoint_last.safetensors was made with --batch-size 16, this run has 8
  [1]
  $ on -b 16 --accumulate 2
  linear_probe: error: checkpoint run/checkpoint_last.safetensors was made with 16 images per step, this run has 32 (1 rank of 16, 2 times). Use --batch-size 8
  [1]
  $ on -b 16 --phases finetune
  linear_probe: error: checkpoint run/checkpoint_last.safetensors is of phase 'probe', this run has --phases finetune
  [1]
  $ on -b 16 --model vit_small16 --image-size 32
  linear_probe: error: checkpoint run/checkpoint_last.safetensors is of model 'vit_tiny4', this run trains 'vit_small16'
  [1]

Accumulated batches are one large batch. The last step of 44 images is 6 and 2. Adam moves a weight by about the rate in each step (1e-4 after
the first phase), so batches that weigh wrongly show; a gradient of about 0 may go either way.

  $ accumulated="-e 1 -lr 8e-4 --layer-decay 0.8 --weight-decay 0.1 --ema 0.5"
  $ probe $accumulated -b 12 --out large > log 2>&1; probe $accumulated -b 6 --accumulate 2 --out small > log 2>&1; jq .steps small/summary.json
  8
  $ apart mean 1e-6 large/finetuned.safetensors small/finetuned.safetensors
