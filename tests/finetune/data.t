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
  finetune: error: --data: the folder data has validation.jsonl, validation.tsv. --validation-file says which it is
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
  $ tune --validation-file validation.jsonl --label-column-name question
  finetune: error: text table: data/train.csv:1: expected texts and label in columns of their own, got 'question' twice
  [1]
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

Labels with a point are scores, and so must be all others.

  $ mkdir scores; printf 'sentence\tlabel\na\t0.5\nb\tinf\n' > scores/train.tsv; cp scores/train.tsv scores/dev.tsv; of scores
  finetune: error: data: scores: expected numbers as all labels, as '0.5' is one, got 'inf'. --problem-type single_label_classification makes each a class
  [1]

Two names of one part, and names that other programs give it.

  $ mkdir names; cp two/train.tsv names; cp two/train.tsv names/valid.tsv; cp two/train.tsv names/val.tsv; of names
  finetune: error: --data: the folder names has val.tsv, valid.tsv. --validation-file says which it is
  [1]
  $ names() { finetune --data names --model bert_tiny --vocab-size 100 --dry-run 2>&1 | grep 'error\|^data'; }
  $ rm names/val.tsv; names
  data    train.tsv: 2 sentences, 2 classes; valid.tsv: 2 sentences, 2 classes; 9 tokens

Lines of old Macs, and objects that lack a name of later ones.

  $ tr '\n' '\r' < two/train.tsv > names/train.tsv; names
  data    train.tsv: 2 sentences, 2 classes; valid.tsv: 2 sentences, 2 classes; 9 tokens
  $ rm names/train.tsv; printf '{"text": "a"}\n{"text": "b", "label": 1}\n' > names/train.jsonl; names
  finetune: error: text table: names/train.jsonl:1: expected a label, got none
  [1]

Files of other programs are named, with the cure.

  $ rm names/train.jsonl; cp two/train.tsv names/Train.TSV; mv names/valid.tsv names/Valid.tsv; names
  data    Train.TSV: 2 sentences, 2 classes; Valid.tsv: 2 sentences, 2 classes; 9 tokens
  $ rm names/Train.TSV; gzip < two/train.tsv > names/train.tsv; names
  finetune: error: text table: names/train.tsv: it is packed by gzip, expected a text. Unpack it: gunzip, or tar -xzf for .tar.gz
  [1]
  $ printf 'PK\3\4................\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml\xff' > names/train.tsv; names
  finetune: error: text table: names/train.tsv: it is a document of an office program, such as Excel's .xlsx, expected a text. Save it there as CSV in UTF-8
  [1]

  $ mkdir parquet gz; printf PAR1 > parquet/train.parquet; printf PAR1 > gz/train.csv.gz; of parquet
  finetune: error: --data: the folder parquet has train.parquet, expected train.tsv, .csv, .json or .jsonl. In Python: datasets.load_dataset(DIR)[PART].to_json(FILE) writes .jsonl
  [1]
  $ of gz
  finetune: error: --data: the folder gz has train.csv.gz, expected train.tsv, .csv, .json or .jsonl. Unpack it first
  [1]
