# What finetune refuses before it reads anything.

  $ finetune --data /nowhere --out run
  finetune: error: --data: there is no folder /nowhere, which should hold train.tsv and dev.tsv: GLUE's MRPC or SST-2, or your own with columns text and label
  [1]
  $ finetune --model bert_large --out run
  finetune: error: --model: unknown value 'bert_large'. Did you mean 'bert_base'? (finetune --help lists the flags)
  [2]
  $ finetune --max-length 2 --out run
  finetune: error: --max-length: expected a value at least 3 and at most 1048576, got 2 (finetune --help lists the flags)
  [2]
  $ finetune --machine-rank 1 --out run
  finetune: error: --num-processes: expected the number of all machines' processes beside --machine-rank (finetune --help lists the flags)
  [2]
