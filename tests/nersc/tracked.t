# Runs that are tracked: what they log, print and leave, in the folders of the tracked workflow and of a sweep.

needs: yaml zip

  $ cp "$WEFT"/tests/nersc/small.yaml .; train() { train_single_gpu --device cpu --yaml_config=small.yaml "$@"; }
  $ train --config=tracked --run_num=a | sed -E 's/^20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} - root - INFO - /STAMP /'
  …
  STAMP number of model parameters: 0.038145
  …
  STAMP Time taken for epoch 1 is … sec; with …/… in tr/val
  STAMP Loss = …, Val loss = …
  STAMP Time taken for epoch 2 is … sec; with …/… in tr/val
  STAMP Loss = …, Val loss = …
  STAMP Time taken for epoch 3 is … sec; with …/… in tr/val
  STAMP Loss = …, Val loss = …
  STAMP DONE
  …

Each epoch's row has every number of the workflow.

  $ cd outputs/expts/tracked/a; jq -c 'keys' wandb/metrics.jsonl | uniq
  ["best_epoch","best_val_loss","grad","learning_rate","step","time","time_per_epoch","train_loss","val_loss","wt_norm"]
  $ jq -c '[.step, .learning_rate, .grad > 0, .wt_norm > 1, .time_per_epoch > 0, .best_epoch >= 1]' wandb/metrics.jsonl
  [1,0.001,true,true,true,true]
  [2,0.001,true,true,true,true]
  [3,0.001,true,true,true,true]
  $ jq -s -c '. as $rows | [range(length) as $i | $rows[$i].best_val_loss == ([$rows[:$i + 1][].val_loss] | min)]' wandb/metrics.jsonl
  [true,true,true]

Its settings are kept. The schedule `none` has no state.

  $ grep -E '^(lr|batch_size|project):' hyperparams.yaml
  lr: 0.001
  batch_size: 4
  project: 'weft'
  $ grep -A 1 ^batch_size: wandb/config.yaml
  batch_size:
    value: 4
  $ torch_file checkpoints/ckpt.tar | jq .scheduler_state_dict
  null

hyperparams.yaml is a configuration again.

  $ (echo 'default:'; sed 's/^/  /' hyperparams.yaml) > again.yaml; train_single_gpu --device cpu --dry-run --yaml_config again.yaml --run_num=a | grep model
  model   cnn, 38145 parameters

The weights' norm is that of the saved weights, and the gradient's is the change by a step of SGD.

  $ cd ../../../..; train --config=step > out; train --config=steps > out
  $ weights() { torch_file outputs/expts/"$1"/0/checkpoints/ckpt.tar | jq '.model_state | map(.values) | flatten'; }
  $ jq -n -c --slurpfile a <(weights step) --slurpfile b <(weights steps) --slurpfile rows outputs/expts/steps/0/wandb/metrics.jsonl '
  > def norm: map(. * .) | add | sqrt; def near($x): (. / $x - 1 | fabs) < 1e-5;
  > $rows[1] | [(.grad | near([$a[0], $b[0]] | transpose | map(.[1] - .[0]) | norm)), (.wt_norm | near($b[0] | norm))]'
  [true,true]

Runs of a sweep lie together.

  $ train --sweep_id s1 --run_num lr5e-5-bs8 --lr 5e-5 --batch_size 8 > out; grep -E '^(lr|batch_size):' outputs/sweeps/s1/lr5e-5-bs8/hyperparams.yaml
  lr: 5e-05
  batch_size: 8
  $ of outputs/sweeps/s1/lr5e-5-bs8/wandb/metrics.jsonl val_loss | wc -l
  3

A learning rate that learns nothing is on a plateau: it falls to a tenth after each epoch that is not better, also when a resume lies between.

  $ train --config=plateau > out; cd outputs/expts; jq -s 'length, .[-1].learning_rate < 0.2e-6' plateau/0/wandb/metrics.jsonl
  8
  true
  $ cd ../..; train --config=plateau_begun > out; mv outputs/expts/plateau_begun/0 outputs/expts/plateau/half; train --config=plateau --run_num=half > out
  $ cd outputs/expts/plateau; numbers_of() { jq -c '[.step, .learning_rate, .val_loss, .best_epoch]' "$1"/wandb/metrics.jsonl; }
  $ diff <(numbers_of 0) <(numbers_of half)
