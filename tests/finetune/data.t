# The texts of finetune: what it takes, and what it says of others.

needs: utf8proc

  $ "$WEFT"/tests/finetune/small_bert.py; mkdir data
  $ tune() { finetune --device cpu --epochs 1 --lr 0 --data data --weights bert --dry-run --out run "$@" 2>&1 | grep 'error\|\.tsv\|\.csv'; }
  $ tune
  finetune: error: --data: there is no train.tsv in the folder data, nor .csv, .json or .jsonl. --train-file names another file
  [1]
  $ printf 'question,answer,label\n"good, bad",good,1\nbad,good,0\n' > data/train.csv
  $ echo '{"question": "good", "answer": "bad", "label": 1}' > data/validation.jsonl; tune
  data    train.csv: 2 pairs, 2 classes; validation.jsonl: 1 pairs, 1 classes; 11 tokens

Two files of one part, and columns that are not used.

  $ printf 'question\tanswer\tlabel\ta note\ngood\tbad\t1\tx\n' > data/validation.tsv; tune
  finetune: error: --data: the folder data has validation.tsv, validation.jsonl. --validation-file says which it is
  [1]
  $ tune --validation-file validation.tsv
  warning: data: validation.tsv: 1 pairs, 1 classes: these columns are not used: a note. --text-column-names says which are the texts
  data    train.csv: 2 pairs, 2 classes; validation.tsv: 1 pairs, 1 classes; 11 tokens

Columns by name.

  $ tune --validation-file validation.jsonl --text-column-names answer
  warning: data: train.csv: 2 sentences, 2 classes: these columns are not used: question. --text-column-names says which are the texts
  data    train.csv: 2 sentences, 2 classes; validation.jsonl: 1 sentences, 1 classes; 11 tokens
  $ tune --validation-file validation.jsonl --text-column-names a,b,c
  finetune: error: --text-column-names: expected one or two names, got 'a,b,c' (finetune --help lists the flags)
  [2]
  $ tune --validation-file validation.jsonl --label-column-name gold
  finetune: error: text table: data/train.csv:1: expected a column named 'gold', got question, answer, label
  [1]
  $ printf 'question,answer\ngood,good\n' > data/train.csv; tune --validation-file validation.jsonl
  finetune: error: data: data: expected labels in train.csv: 1 pairs, 0 classes, got none, or -1 alone as in GLUE's test parts. Columns: question, answer. --label-column-name names the labels
  [1]

Classes.

  $ mkdir one two; printf 'sentence\tlabel\na\t1\n' > one/train.tsv; printf 'sentence\tlabel\nb\t1\n' > one/dev.tsv
  $ of() { finetune --data $1 --model bert_tiny --vocab-size 100 --out run 2>&1 | tail -n 1; }
  $ of one
  finetune: error: data: one: expected at least two classes, got 1
  [1]
  $ printf 'sentence\tlabel\na\t1\nb\t0\n' > two/train.tsv; printf 'sentence\tlabel\nb\t2\n' > two/dev.tsv; of two
  finetune: error: data: dev.tsv: 1 sentences, 1 classes: the label '2' is none of the model's: 0, 1
  [1]

Files of other programs are named, with the cure.

  $ mkdir parquet gz; printf PAR1 > parquet/train.parquet; printf PAR1 > gz/train.csv.gz; of parquet
  finetune: error: --data: the folder parquet has train.parquet, expected train.tsv, .csv, .json or .jsonl. In Python: datasets.load_dataset(DIR)[PART].to_json(FILE) writes .jsonl
  [1]
  $ of gz
  finetune: error: --data: the folder gz has train.csv.gz, expected train.tsv, .csv, .json or .jsonl. Unpack it first
  [1]
