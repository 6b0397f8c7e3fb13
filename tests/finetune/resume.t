# finetune stops and goes on, from checkpoint-N.

needs: utf8proc zip

96 texts: 12 steps an epoch, 36 in all. Dropout draws numbers.

  $ . "$WEFT"/tests/finetune/texts.sh; sentences data
  $ tune() { finetune --data data --model bert_tiny --vocab-size 100 --lr 1e-3 --epochs 3 --logging-steps 5 --save-steps 20 --weight-decay 0.01 "$@"; }

It goes on bit for bit: behind an epoch, inside one, and from a folder by name. trainer_state.json has the steps at which it was saved.

  $ tune --ema 0.9 --out whole > whole.log 2>&1
  $ for stop in 12 17 29; do tune --ema 0.9 --resume_from_checkpoint auto --max-steps $stop --out pieces > $stop.log 2>&1; grep -o 'stopped by --max-steps after step .[0-9]*' $stop.log; done
  stopped by --max-steps after step 12
  stopped by --max-steps after step 17
  stopped by --max-steps after step 29
  $ tune --ema 0.9 --resume_from_checkpoint --out pieces > rest.log 2>&1; grep -o 'resumed from .*' rest.log
  resumed from pieces/checkpoint-29 at step 29
  $ diff <(printed whole.log) <(printed 12.log 17.log 29.log rest.log); printed whole.log | wc -l
  10
  $ diff -r whole/checkpoint-36 pieces/checkpoint-36; ls whole/checkpoint-36/ema.safetensors
  whole/checkpoint-36/ema.safetensors
  $ diff <(grep -o "'train_loss': [0-9.]*" whole.log) <(grep -o "'train_loss': [0-9.]*" rest.log); grep -c train_loss whole.log
  1
  $ tune --ema 0.9 --resume_from_checkpoint whole/checkpoint-20 --out again > log 2>&1; diff -r -x trainer_state.json whole/checkpoint-36 again/checkpoint-36

So it does with rates by layer: embeddings, two layers, what is behind; matrices and vectors.

  $ decay="--layer-decay 0.5 --epochs 1"; tune $decay --out by_layer > log 2>&1; tune $decay --max-steps 7 --out layers > log 2>&1; tune $decay --resume_from_checkpoint last --out layers > log 2>&1
  $ diff -r -x trainer_state.json by_layer/checkpoint-12 layers/checkpoint-12
  $ torch_file by_layer/checkpoint-12/optimizer.pt | jq -c '.param_groups | map(.initial_lr)'
  [0.000125,0.000125,0.00025,0.00025,0.0005,0.0005,0.001,0.001]

What changed is said, what cannot change is refused.

  $ tune --max-steps 3 --out run > log 2>&1; on() { tune "$@" --resume-from-checkpoint last --max-steps 4 --out run 2>&1 | grep 'settings\|error'; }
  $ on --seed 7
  finetune: error: checkpoint run/checkpoint-3 was made with another --seed (42 -> 7), on which the order of texts depends
  [1]
  $ finetune --data data --model bert_base --resume-from-checkpoint last --out run
  finetune: error: checkpoint run/checkpoint-3: is of --model bert_tiny, this run has --model bert_base
  [1]
  $ on --lr 2e-3
  with other settings than the checkpoint: lr 0.001 -> 0.002

One bit in a file of the last checkpoint, or a file that is gone: the one before counts, and the damaged step is made again.

  $ rm -r run; tune --save-steps 3 --max-steps 7 --out run > log 2>&1
  $ flip() { python3 -c 'import sys; data = bytearray(open(sys.argv[1], "rb").read()); data[len(data) // 2] ^= 4; open(sys.argv[1], "wb").write(data)' "$1"; }
  $ for name in model.safetensors optimizer.pt scheduler.pt vocab.txt trainer_state.json; do
  >   file=run/checkpoint-7/$name; cp $file saved
  >   case $name in scheduler.pt) rm $file ;; trainer_state.json) truncate -s $(($(stat -c %s $file) / 2)) $file ;; *) flip $file ;; esac
  >   tune --resume-from-checkpoint auto --max-steps 7 --out run 2>&1 | grep -o 'going on from.*\|resumed from.*'; same $file saved
  > done
  going on from run/checkpoint-6
  resumed from run/checkpoint-6 at step 6
  going on from run/checkpoint-6
  resumed from run/checkpoint-6 at step 6
  going on from run/checkpoint-6
  resumed from run/checkpoint-6 at step 6
  going on from run/checkpoint-6
  resumed from run/checkpoint-6 at step 6
  going on from run/checkpoint-6
  resumed from run/checkpoint-6 at step 6
  $ mkdir run/checkpoint-9; tune --resume-from-checkpoint auto --max-steps 7 --out run 2>&1 | grep -o 'warning: .*\|resumed from.*'; rmdir run/checkpoint-9
  warning: checkpoint: run/checkpoint-9 has no trainer_state.json, which is written last: it is not whole; going on from run/checkpoint-7
  resumed from run/checkpoint-7 at step 7
  $ : > run/checkpoint-7/optimizer.pt; tune --max-steps 8 --resume-from-checkpoint run/checkpoint-7 --out run 2>&1 | grep -o 'optimizer.pt: damaged.*'
  optimizer.pt: damaged: its bytes do not fit their checksum in trainer_state.json
  [1]
  $ : > run/checkpoint-6/optimizer.pt; : > run/checkpoint-3/optimizer.pt; tune --resume-from-checkpoint auto --max-steps 7 --out run 2>&1 | grep -o 'error.*checkpoint-7/optimizer.pt: damaged'
  error: checkpoint: run/checkpoint-7/optimizer.pt: damaged
  [1]

SIGTERM saves, and ends with 75.

  $ rm -r run; (exec finetune --data data --model bert_tiny --vocab-size 100 --epochs 10000 --logging-steps 5 --save-steps 20 --out run) > log 2>&1 & run=$!
  $ until_true test -e run/checkpoint-20; kill -TERM $run; wait $run
  [75]
  $ step=$(grep -o 'stopped by SIGTERM after step [0-9]*' log | cut -d ' ' -f 6); ls run/checkpoint-$step/optimizer.pt
  run/checkpoint-…/optimizer.pt

A finished run is overwritten on request only, and by a run that can begin.

  $ rm -r run; tune --epochs 1 --out run > log 2>&1; tune --epochs 1 --out run 2>&1 | tail -n 1
  finetune: error: run folder: expected a new folder, got run with checkpoint-12 of another run. --resume-from-checkpoint last continues it, --out names another folder, --overwrite replaces it
  [1]
  $ tune --overwrite --weights run/checkpoint-12 --out run 2>&1 | tail -n 1
  finetune: error: --overwrite: would remove the --weights run/checkpoint-12. Name another --out (finetune --help lists the flags)
  [2]
  $ tune --overwrite --weights /nowhere --out run > log 2>&1
  [1]
  $ ls -d run/checkpoint-12; tune --epochs 1 --batch-size 16 --overwrite_output_dir --out run > log 2>&1; ls -d run/checkpoint-*
  run/checkpoint-12
  run/checkpoint-6

What does not fit is refused.

  $ tune --epochs 1 --overwrite --out run > log 2>&1; from=run/checkpoint-12; other() { tune --epochs 1 "$@" --out other 2>&1 | tail -n 1; }
  $ other --resume_from_checkpoint
  finetune: error: --resume-from-checkpoint last: there is no checkpoint-N in other
  [1]
  $ other --resume_from_checkpoint data
  finetune: error: --resume-from-checkpoint data: expected a folder with trainer_state.json, as finetune writes it
  [1]
  $ other --batch-size 16 --resume_from_checkpoint $from
  finetune: error: checkpoint run/checkpoint-12 was made in a run of 12 steps of 8 texts, this run has 6 of 16
  [1]
  $ other --ema 0.9 --resume_from_checkpoint $from
  finetune: error: checkpoint run/checkpoint-12 was made without --ema: its averages cannot be resumed
  [1]
  $ other --layer-decay 0.5 --resume_from_checkpoint $from
  finetune: error: run/checkpoint-12/optimizer.pt: expected 8 parameter groups and the state of 41 parameters, got 2 and 41
  [1]
  $ echo '{}' > $from/trainer_state.json; other --resume_from_checkpoint $from
  finetune: error: trainer state: run/checkpoint-12/trainer_state.json: expected what finetune or Hugging Face's Trainer writes, got '[json.exception.out_of_range.403] key 'global_step' not found'
  [1]

Accumulated batches are one large batch: the seventh step of 96 texts has 12, 7 and 5. Clipping sees the size of the gradient.

  $ accumulated="--epochs 1 --dropout 0 --lr 1e-4"; norm() { sed -n "s/.*'grad_norm': \([0-9.e-]*\).*/\1/p" $1; }
  $ tune $accumulated --batch-size 14 --out large > large.log 2>&1; tune $accumulated --batch-size 7 --accumulate 2 --out small > small.log 2>&1
  $ apart mean 1e-6 large/checkpoint-7/model.safetensors small/checkpoint-7/model.safetensors
  $ norm large.log | wc -l; jq -n "($(norm small.log) / $(norm large.log) - 1) | fabs < 1e-3"
  1
  true
