# What NERSC's workflow refuses, each in one line.

needs: yaml zip

  $ cp "$WEFT"/tests/nersc/small.yaml .; train() { train_single_gpu --device cpu --yaml_config=small.yaml "$@"; }
  $ fails train --yaml-config=x
  train_single_gpu: error: unknown flag --yaml-config. Did you mean --yaml_config? … [2]
  $ fails train --yaml_config=none.yaml
  train_single_gpu: error: none.yaml: expected a YAML file, got none there (train_single_gpu --help lists the flags) [2]
  $ fails train --config=defautl
  train_single_gpu: error: small.yaml: expected a section 'defautl', got none. Did you mean 'default'? (train_single_gpu --help lists the flags) [2]
  $ fails train --run_num=a/b
  train_single_gpu: error: --run_num: expected a name without '/', got 'a/b' (train_single_gpu --help lists the flags) [2]
  $ fails train --run_num=..
  train_single_gpu: error: --run_num: expected a name without '/', got '..' (train_single_gpu --help lists the flags) [2]
  $ fails train --run_num=''
  train_single_gpu: error: --run_num: 1 required TEXT missing (train_single_gpu --help lists the flags) [2]
  $ fails train --lr=0
  train_single_gpu: error: --lr: expected a value above 0, got 0 (train_single_gpu --help lists the flags) [2]
  $ fails train --device=tpu
  train_single_gpu: error: device: expected cpu, cuda, cuda:N or emulated, got 'tpu' [1]
  $ fails train --batch_size=9
  train_single_gpu: error: data: expected at least the 9 samples of a batch, got 8 [1]
  $ touch file; train --root_dir=file
  train_single_gpu: error: root_dir: cannot create file/default/0/checkpoints: Not a directory
  [1]

A configuration's fault has its file and line.

  $ given() { printf 'default:\n%b\n' "$1" > bad.yaml; train --yaml_config=bad.yaml; }
  $ fails given '  lr: 1E-3\n  bacth_size: 16'
  train_single_gpu: error: bad.yaml:3: unknown key 'bacth_size'. Did you mean 'batch_size'? (train_single_gpu --help lists the flags) [2]
  $ fails given '  lr: fast'
  train_single_gpu: error: bad.yaml:2: lr: expected a number, got 'fast' (train_single_gpu --help lists the flags) [2]
  $ fails given '  optimizer: adm'
  train_single_gpu: error: bad.yaml:2: optimizer: unknown value 'adm'. Did you mean 'adam'? (train_single_gpu --help lists the flags) [2]
  $ given '  lr: 1e30\n  num_samples: 4\n  img_size: 4\n  batch_size: 4\n  valid_batch_size: 4'
  …
  train_single_gpu: error: the loss is not a number in epoch 1. Choose a smaller lr…
  [1]

`--help` names each flag, with its default.

  $ train_multi_gpu --help > help; grep -oE -- '--(yaml_config|config|root_dir|run_num|sweep_id|device|dry-run) |\./configs/default\.yaml|\./outputs' help | sort -u
  --config
  --device
  --dry-run
  --root_dir
  --run_num
  --sweep_id
  --yaml_config
  ./configs/default.yaml
  ./outputs
