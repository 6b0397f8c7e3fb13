# The OUAI demo as its users start it, on a small transformer.

  $ small='--weights random --model vit_tiny4 --data random:40x32x32x3 --precision f32 --workers 1 --device cpu'

A dry run trains nothing, and writes nothing.

  $ ouai_demo -e 3 -b 8 --dry-run $small --out run 2> said | tee dry
  device  cpu (…)
  …
  dry run: would train probe,finetune, 3 epochs each, 5 steps an epoch, none; nothing is written
  $ grep -c 'linear probe' dry; ls
  0
  dry
  said

Each epoch prints what the original prints.

  $ ouai_demo -e 2 -b 8 -lr 1e-3 $small --out run 2> said > out; sed '/^[a-z]/d' out
  0 linear probe
  0 epoch
  {'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)} (re)
  0 epoch
  {'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)} (re)
  0 finetuning
  0 epoch
  {'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)} (re)
  0 epoch
  {'validation accuracy': tensor\([0-9]+\.[0-9]{4}\)} (re)

A log in the place of the tracking service has the same numbers under its key, and its names.

  $ cd run/'OUAI Demo'; jq .step metrics.jsonl
  0
  1
  2
  3
  $ near 1e-4 <(of metrics.jsonl 'validation accuracy') <(grep -o 'tensor(.*' ../../out | numbers)
  $ sed 's/^$/-/' config.yaml
  wandb_version: 1
  -
  project:
    value: "OUAI Demo"
  -
  entity:
    value: "ai2es"
  -
  name:
    value: "Tuning DINOv2"
  -
  epochs:
    value: 2
  -
  batch_size:
    value: 8
  …

Its defaults are the workflow's: a pretrained file, whose absence is told with the cure, and FSDP's units of ten million parameters.

  $ cd ../..; ouai_demo --help > help; grep -oE 'OUAI demo of OSCER|hub/checkpoints/dinov2_vitl14_reg4_pretrain.pth|10000000' help | sort -u
  10000000
  OUAI demo of OSCER
  hub/checkpoints/dinov2_vitl14_reg4_pretrain.pth
  $ ouai_demo -e 5 -b 256 -lr 1e-3
  ouai_demo: error: --weights hub/checkpoints/dinov2_vitl14_reg4_pretrain.pth: there is no such file. `tools/fetch_weights dinov2_vitl14_reg hub/checkpoints` brings a published backbone there, `--weights random` starts from nothing
  [1]
  $ ouai_demo --explain-sharding
  … min_num_params 10000000: 24 units and the root
       2116708 root
      12598272 m.blocks.0
  …
      12598272 m.blocks.23
  $ ouai_demo -x 3
  ouai_demo: error: unknown flag -x. (ouai_demo --help lists the flags)
  [2]
