# The run folder of train_image: what is in it, when it is kept, when it is replaced.

  $ train() { train_image --data random:96x16x16x3 --model resnet8 "$@"; }

A dry run says what would be trained, and writes nothing.

  $ train --batch-size 16 --epochs 3 --dry-run --out run 2>&1 | tail -n 1; ls
  dry run: would train 3 epochs of 6 steps, 16 images each, sgd at 0.1, schedule cosine, and write run

A run prints its model if asked to, and a line per epoch; it keeps all else in its folder.

  $ train --batch-size 32 --epochs 2 --log-interval 3 --export model.safetensors --summary --out run > log 2>&1; grep -o 'layer1.0.conv1.*\|epoch 2/2  step 3/3' log | uniq
  layer1.0.conv1  Conv2d       [1,16,16,16]       2,304  1,179,648
  epoch 2/2  step 3/3
  $ ls run
  checkpoint_best.safetensors
  checkpoint_last.1.safetensors
  checkpoint_last.safetensors
  classes.txt
  config.toml
  events.out.tfevents.…
  metrics.jsonl
  summary.json
  $ jq -rc '[.split, .epoch, .step]' run/metrics.jsonl
  ["steps",1,3]
  ["train",1,3]
  ["val",1,3]
  ["steps",2,6]
  ["train",2,6]
  ["val",2,6]
  $ jq -c 'keys - ["time"]' run/metrics.jsonl | sort -u
  ["accuracy","data_wait","epoch","gradient_norm","images_per_second","loss","lr","split","step"]
  ["accuracy","data_wait","epoch","images_per_second","loss","lr","peak_tensor_bytes","split","step"]
  ["accuracy","data_wait","epoch","images_per_second","loss","lr","split","step"]
  $ jq -c 'has("time")' run/metrics.jsonl | sort -u
  true
  $ jq -c keys run/summary.json
  ["best_epoch","best_val_accuracy","data","device","epochs","finished","images_per_second","model","peak_memory_bytes","peak_tensor_bytes","ranks","steps","val_accuracy","val_loss"]

Its configuration and the exported weights give the evaluation that the run saw last.

  $ train_image --config run/config.toml --export '' --weights model.safetensors --eval-only > log 2>&1
  $ grep -o 'val loss .*%' log > line; diff line <(jq -r '[.val_loss, .val_accuracy * 100] | @tsv' run/summary.json | xargs printf 'val loss %.4f accuracy %.2f%%\n')

A finished run stays as it is.

  $ cp run/summary.json before; train --batch-size 32 --epochs 2 --resume auto --out run 2>&1 | tail -n 1; same before run/summary.json
  … rank 0: all 2 epochs are done; raise --epochs to continue

A run that cannot begin replaces none, whatever --overwrite says.

  $ step() { state run/checkpoint_last.safetensors | grep '^step '; }
  $ one() { train --batch-size 16 --device cpu --max-steps 1 --overwrite --out run "$@" > log 2>&1; }
  $ one; step
  step 1
  $ one --graph on
  [2]
  $ one --profile-steps 8:5
  [2]
  $ one --resume /nowhere.safetensors
  [1]
  $ step
  step 1

A checkpoint on the way if asked for: here of step 4, before that of the end.

  $ train --batch-size 16 --epochs 1 --save-interval 4 --overwrite --out run > log 2>&1; step; state run/checkpoint_last.1.safetensors | grep '^step '
  step 6
  step 4
