# train_vit trains on made-up fields of weather.

needs: hdf5 yaml

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41
  fields/train/1979.h5: 41 x 4 x 16 x 32
  fields/train/1980.h5: 41 x 4 x 16 x 32
  fields/valid/1981.h5: 41 x 4 x 16 x 32
  train_vit --yaml_config fields/ViT.yaml --config base
  $ train() { train_vit --device cpu --yaml_config fields/ViT.yaml "$@"; }
  $ losses() { sed -n "s/.*Avg $1 loss=//p" "$2"; }

A dry run says what would happen, and writes nothing.

  $ train --num_iters 20 --run_num dry --dry-run | grep -E '^(grid|steps)'
  grid    1 data x 1 model ranks
  steps   20 of 16 samples, 5 an epoch; 3 of validation
  $ ls fields
  ViT.yaml
  stats
  train
  valid

80 pairs in batches of 16 are five steps an epoch. The loss falls, in training and in validation.

  $ train --num_iters 60 --num_data_workers 2 --enable_fused --enable_jit --data_loader_config dali --disable_broadcast_buffers --run_num one > out
  $ cd fields/logs/base/1GPU/one; losses train out.log | wc -l
  12
  $ losses train out.log | jq -s '.[-1] < 0.75 * .[0]'; losses val out.log | jq -s 'length, .[-1] < 0.8 * .[0]'
  true
  12
  true

The lines are those of the workflow, on the screen and in out.log. A key without meaning here is reported once.

  $ stamped() { sed -E 's/^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3} - root - INFO - /STAMP /' "$1"; }
  $ stamped out.log | sed '/epoch 1 /,/epoch 12 /{/epoch 12 /!d}'
  …
  STAMP Starting Training Loop...
  …
  STAMP Time taken for epoch 12 is [0-9.e-]+ sec, avg [0-9.e+]+ samples/sec (re)
  STAMP   Avg train loss=0\.\d{6} (re)
  STAMP   Avg val loss=0\.\d{6} (re)
  STAMP   Total validation time: [0-9.e-]+ sec (re)
  STAMP DONE ---- rank 0
  $ diff <(stamped out.log) <(stamped ../../../../../out)
  $ stamped out.log | grep 'without effect'
  STAMP without effect: enable_fused: …
  STAMP without effect: enable_jit: …
  STAMP without effect: data_loader_config dali: …
  STAMP without effect: disable_broadcast_buffers: …

The numbers of each step are in metrics.jsonl, under the workflow's names.

  $ jq -c 'select(.step == 0) | ."Loss/train" - 1 | fabs < 0.2' logs/metrics.jsonl
  true
  $ tail -n 1 logs/metrics.jsonl | jq -c 'keys, .step, ."RMSE(u10m)/valid" < 1'
  ["Avg iters per sec","Avg samples per sec",…"Learning Rate","Loss/train","Loss/valid","RMSE(u10m)/valid",…"step",…]
  60
  true
  $ near 1e-6 <(losses val out.log | tail -n 1) <(of logs/metrics.jsonl Loss/valid | tail -n 1)

A finished run has nothing left to do. Another one in its folder is refused, or replaces it.

  $ cd ../../../../..; train --num_iters 5 --run_num done &> out && train --num_iters 5 --run_num done --resume &> out && grep -oE 'resumed from|Time taken' out
  resumed from
  $ train --num_iters 5 --run_num done
  …
  train_vit: error: … with checkpoint.safetensors of another run. --resume continues it, --run_num names another folder, --overwrite replaces it
  [1]
  $ train --num_iters 5 --run_num done --overwrite &> out && losses '[a-z]*' fields/logs/base/1GPU/done/out.log | wc -l
  2

A resumed run names the settings that changed, and needs the same samples in each step.

  $ train --num_iters 10 --run_num done --resume --seed 7 2> /dev/null | grep 'other settings'
  … with other settings than the checkpoint: num_iters 5 -> 10, seed 0 -> 7
  $ train --num_iters 10 --run_num done --resume --local_batch_size 8
  …
  train_vit: error: … was made with 16 samples per step, this run has 8
  [1]

bf16 trains, too (a processor without it is noted): products err by 2^-8, which a relative loss of order 1 hands on.

  $ train --num_iters 20 --run_num f32 > full && train --num_iters 20 --amp_mode bf16 --run_num bf16 > low 2> notes && losses '[a-z]*' low | wc -l
  8
  $ near 0.0078125 <(losses '[a-z]*' low) <(losses '[a-z]*' full)

A warm-up that is longer than the run is warned of.

  $ train --num_iters 2 --run_num short 2>&1 | grep warning
  warning: warmup (10 steps) is not shorter than the run (num_iters 2): the rate never reaches lr
