# finetune learns, prints and saves as Hugging Face's Trainer does.

needs: utf8proc

96 texts, whose class is one word: 12 steps of 8 an epoch.

  $ . "$WEFT"/tests/finetune/texts.sh; sentences data
  $ tune() { finetune --data data --model bert_tiny --vocab-size 100 --lr 1e-3 --epochs 3 --logging-steps 10 --save-steps 20 "$@"; }
  $ tune --out run 2> log | tee out | grep -o "^{'[a-z_]*'\|'learning_rate.*"
  {'loss'
  'learning_rate': 0.00075, 'epoch': 0.83}
  {'eval_loss'
  {'loss'
  'learning_rate': 0.00047222222222222224, 'epoch': 1.67}
  {'eval_loss'
  {'loss'
  'learning_rate': 0.00019444444444444443, 'epoch': 2.5}
  {'eval_loss'
  {'train_runtime'

The rate of step 10, the tenth, is 1e-3 (1 - 9 / 36). Numbers are numbers:

  $ number='-?[0-9.]+(e-?[0-9]+)?'
  $ grep -cxE "\{'loss': $number, 'grad_norm': $number, 'learning_rate': $number, 'epoch': [0-9.]+\}" out
  3
  $ grep -cxE "\{'eval_loss': $number, 'eval_accuracy': $number, 'eval_f1': $number, 'epoch': [0-9.]+\}" out
  3
  $ jq -c '[.steps, .texts_per_second > 0, .eval_accuracy >= 0.95]' run/summary.json
  [36,true,true]

Tensors are at least the blocks of bert_tiny, with gradients and two moments.

  $ jq '.peak_tensor_bytes > 4 * 4 * 400000' run/summary.json; grep -A 1 num_train_epochs: run/config.yaml; ls run/checkpoint-20/model.safetensors
  true
  num_train_epochs:
    value: 3
  run/checkpoint-20/model.safetensors
  $ state run/checkpoint-36/model.safetensors | grep 'layer.1.attention.self.key.weight\|layer.0.attention.output.dense.bias\|classifier.weight'
  bert.encoder.layer.0.attention.output.dense.bias F32 [128] …
  bert.encoder.layer.1.attention.self.key.weight F32 [128, 128] …
  classifier.weight F32 [2, 128] …

Its own checkpoint, at a rate of 0, scores the same: names, vocabulary and weights come back.

  $ finetune --data data --model bert_tiny --lr 0 --epochs 1 --weights run/checkpoint-36 --out again > log 2>&1
  $ for run in run again; do jq -c '[.eval_accuracy, .eval_loss]' $run/summary.json; done | sort -u | wc -l
  1

It takes pairs, in bf16.

  $ mkdir pairs; { printf 'Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n'; for _ in 1 2 3 4 5 6; do printf '0\t1\t2\tthe cat sat\ta dog ran away\n1\t1\t2\tthe cat sat\tthe cat sat\n'; done; } | tee pairs/train.tsv > pairs/dev.tsv
  $ tune --data pairs --max-length 8 --precision bf16 --out of_pairs 2>&1 | grep 'train.tsv'
  data    train.tsv: 12 pairs, 2 classes; dev.tsv: 12 pairs, 2 classes; 37 tokens

It prints no progress of a short epoch into a log.

  $ finetune --data data --model bert_tiny --vocab-size 100 --epochs 1 --batch-size 32 --device cpu --out short > log 2>&1; grep -c 'epoch 1/1  step' log
  0
  [1]

A dry run reads all and writes nothing.

  $ finetune --data data --model bert_tiny --vocab-size 100 --epochs 2 --batch-size 32 --device cpu --dry-run --out new 2>&1 | tail -n 1; ls -d new
  dry run: would train 2 epochs of 3 steps, 32 texts each, lr 5e-05, and write new
  ls: cannot access 'new': No such file or directory
  [2]

Without arguments it is the workflow: MRPC, and the pretrained weights that lie beside it.

  $ last() { finetune --device cpu "$@" 2>&1 | tail -n 1; }
  $ last
  finetune: error: --data: there is no folder mrpc, which should hold train.tsv and dev.tsv: GLUE's MRPC or SST-2, or your own with columns text and label
  [1]
  $ cp -r data mrpc; last
  finetune: error: --weights: there is no folder bert-base-uncased here, from whose weights to start. `tools/fetch_weights bert_base_uncased .` brings it, --weights names another place; --weights random starts from nothing
  [1]
  $ ls -d test-trainer
  ls: cannot access 'test-trainer': No such file or directory
  [2]
  $ mkdir bert_base_uncased; last
  finetune: error: weights: bert_base_uncased: it is an empty folder, expected a file, or a folder with model.safetensors or pytorch_model.bin. Was it copied or downloaded in whole?
  [1]
  $ mkdir bert-base-uncased; last
  finetune: error: weights: bert-base-uncased: it is an empty folder, expected a file, or a folder with model.safetensors or pytorch_model.bin. Was it copied or downloaded in whole?
  [1]
  $ last --model bert_tiny --vocab-size 100 --dry-run
  dry run: would train 3 epochs of 12 steps, 8 texts each, lr 5e-05, and write test-trainer

Sizes and dropout come from the configuration beside the weights; bert_base, the default of --model, would not fit.

  $ few() { finetune --data data --epochs 1 --max-steps 2 "$@" 2>&1 | tail -n 1; }
  $ few --model bert_tiny --vocab-size 100 --dropout 0.25 --out first
  stopped by --max-steps after step 2; continue with: finetune --config first/config.toml --max-steps 0 --resume-from-checkpoint last --out first
  $ few --weights first/checkpoint-2 --out second; jq -c '[.hidden_size, .hidden_dropout_prob]' second/checkpoint-2/config.json
  stopped by --max-steps after step 2; continue with: finetune --config second/config.toml --max-steps 0 --resume-from-checkpoint last --out second
  [128,0.25]
  $ cp first/checkpoint-2/config.json whole.json
  $ with() { jq -c ". + $1" whole.json > first/checkpoint-2/config.json; few --weights first/checkpoint-2 --out third; }
  $ with '{"model_type": "t5"}'
  finetune: error: first/checkpoint-2/config.json: expected model_type 'bert', 'roberta', 'xlm-roberta', 'camembert' or 'distilbert', got 't5'
  [1]
  $ with '{"attention_probs_dropout_prob": 1.5}'
  finetune: error: first/checkpoint-2/config.json: expected attention_probs_dropout_prob of 0 to below 1, got 1.5
  [1]
  $ with '{"num_hidden_layers": 1099511627776}'
  finetune: error: first/checkpoint-2/config.json: expected num_hidden_layers of 1 to 1024, got 1099511627776
  [1]
  $ with '{"hidden_size": "wide"}'
  finetune: error: first/checkpoint-2/config.json: hidden_size: expected a whole number, got string
  [1]

Weights that do not fit, or are not there.

  $ mkdir empty; last --data data --weights empty --out other
  finetune: error: weights: empty: it is an empty folder, expected a file, or a folder with model.safetensors or pytorch_model.bin. Was it copied or downloaded in whole?
  [1]
  $ rm run/checkpoint-36/config.json; last --data data --model bert_base --weights run/checkpoint-36 --out other
  finetune: error: --weights run/checkpoint-36/model.safetensors: 1 tensor loaded; wrong shape: bert.embeddings.word_embeddings.weight (expected [66,768], got [66,128]), …
  [1]
