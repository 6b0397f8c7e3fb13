# A checkpoint holds what Hugging Face's Trainer keeps, and is read as the Trainer writes it.

needs: utf8proc zip

  $ . "$WEFT"/tests/finetune/texts.sh; sentences data
  $ tune() { finetune --data data --model bert_tiny --vocab-size 100 --lr 1e-3 --epochs 2 --logging-steps 5 --save-steps 20 --weight-decay 0.01 "$@"; }
  $ tune --out run > log 2>&1; ls run/checkpoint-20
  config.json
  model.safetensors
  optimizer.pt
  scheduler.pt
  special_tokens_map.json
  tokenizer_config.json
  trainer_state.json
  vocab.txt
  weft_rng_state.pth
  $ jq -c '[.global_step, .max_steps, .train_batch_size, .epoch * 12]' run/checkpoint-20/trainer_state.json
  [20,24,8,20]

The Trainer writes into this entry when it saves, and fails where there is none.

  $ jq -c '.stateful_callbacks.TrainerControl | [.args.should_training_stop, (.attributes | type)]' run/checkpoint-20/trainer_state.json
  [false,"object"]
  $ jq -c '.log_history | map([.step, has("eval_loss")])' run/checkpoint-20/trainer_state.json
  [[5,false],[10,false],[12,true],[15,false],[20,false]]

Parameters are numbered as torch.optim does: matrices, then vectors, each in the order of Hugging Face's modules.

  $ torch_file run/checkpoint-20/optimizer.pt > optimizer.json; jq -c '.param_groups[] | [.weight_decay, .initial_lr, (.params | length), .params[0]]' optimizer.json
  [0.01,0.001,17,0]
  [0,0.001,24,17]
  $ jq -c '.state | length, .["0"].step.values[0]' optimizer.json
  41
  20

Here positions, token types, the first layer's key, its intermediate.dense and output.dense, the classifier:

  $ jq -c '[.state["1", "2", "4", "7", "8", "16"].exp_avg.shape]' optimizer.json
  [[512,128],[2,128],[128,128],[512,128],[128,512],[2,128]]
  $ torch_file run/checkpoint-20/scheduler.pt | jq -c '[.last_epoch, (._last_lr[0] - 1e-3 * (1 - 20 / 24) | fabs < 1e-12)]'
  [20,true]

It goes on from the state of the Trainer: without what finetune adds, and with a random state that is none of Weft's. The loss of the run is the
mean of its lines', which are printed with four digits.

  $ flags="--dropout 0"; tune $flags --out whole > whole.log 2>&1; tune $flags --max-steps 15 --out theirs > log 2>&1; cd theirs/checkpoint-15
  $ cp trainer_state.json weft.json; jq -c 'del(.stateful_callbacks.weft)' weft.json > trainer_state.json; rm weft.json weft_rng_state.pth; echo 'generators of NumPy and Python' > rng_state.pth; cd ../..; cp -r theirs/checkpoint-15 saved
  $ tune $flags --resume_from_checkpoint --out theirs > rest.log 2>&1; grep -o 'resumed from.*\|has no random state.*' rest.log
  has no random state for it: dropout starts from its seed
  resumed from theirs/checkpoint-15 at step 15
  $ same whole/checkpoint-24/model.safetensors theirs/checkpoint-24/model.safetensors
  $ loss() { grep -o "'train_loss': [0-9.]*" $1 | cut -d ' ' -f 2; }; jq -n "$(loss whole.log) - $(loss rest.log) | fabs < 1e-4"
  true

A loss of theirs may be NaN, which Python writes although JSON lacks it.

  $ jq -c '.log_history[0].loss = "a loss"' saved/trainer_state.json | sed 's/"a loss"/NaN/' > theirs/checkpoint-15/trainer_state.json; grep -c NaN theirs/checkpoint-15/trainer_state.json
  1
  $ tune $flags --resume_from_checkpoint theirs/checkpoint-15 --out diverged > log 2>&1 && grep -o 'resumed from.*' log
  resumed from theirs/checkpoint-15 at step 15
  $ tune $flags --epochs 3 --resume_from_checkpoint saved --out other 2>&1 | tail -n 1
  finetune: error: checkpoint saved was made in a run of 24 steps, this run has 36
  [1]

Each parameter has a count of steps of its own: here the first one has made 10.

  $ python3 - << 'END'
  > import struct, zipfile
  > with zipfile.ZipFile("saved/optimizer.pt") as archive:
  >     entries = {name: archive.read(name) for name in archive.namelist()}
  > first = next(name for name, data in entries.items() if data == struct.pack("<f", 15))
  > entries[first] = struct.pack("<f", 10)
  > with zipfile.ZipFile("saved/optimizer.pt", "w") as archive:
  >     for name, data in entries.items():
  >         archive.writestr(name, data)
  > END
  $ tune $flags --max-steps 16 --resume_from_checkpoint saved --out counted 2>&1 | grep -o 'resumed from.*'
  resumed from saved at step 15
  $ torch_file counted/checkpoint-16/optimizer.pt | jq -c '[.state["0", "1"].step.values]'
  [[11],[16]]
