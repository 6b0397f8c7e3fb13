# A chat model

`chat.sh` makes a small model with a chat template, and 200 conversations. Packed rows train as rows of one conversation each do.

  $ . "$WEFT"/tests/gpt/chat.sh
  $ head -2 chat
  {"messages": [{"role": "user", "content": "who sits?"}, {"role": "assistant", "content": "the cat sits."}]}
  {"messages": [{"role": "user", "content": "who runs?"}, {"role": "assistant", "content": "the dog runs."}, {"role": "user", "content": "who sings?"}, {"role": "assistant", "content": "the bird sings."}]}
  $ tune() { train_gpt --config tune.toml --out "$@"; }
  $ tune packed --rows packed --batch-size 8 --lr 0 --epochs 1
  device  cpu …
  data    chat: 11433 tokens, 4866 of them trained, in 133 rows of 100, 2869 tokens for validation, 66 documents cut to the row, of 24
  model   4 layers, 128 wide, 4 heads, 732288 parameters, weights base, f32
  run     packed
  warning: the learning rate is 0, so nothing is learned
  …
  … rank 0: epoch 1/1  step 16/16 …
  $ tune single --rows single --batch-size 8 --lr 0 --epochs 1 2> log | grep ^data
  data    chat: 11433 tokens, 4866 of them trained, in 160 rows of 100, 2869 tokens for validation, 66 documents cut to the row, of 24
  $ jq -s '(.[0].val_loss - .[1].val_loss | fabs) < 1e-6 * .[1].val_loss' packed/summary.json single/summary.json
  true

It learns to answer.

  $ tune run --batch-size 4 --epochs 8 > log 2>&1 && jq '.val_loss < 0.2' run/summary.json
  true
  $ ask() { sample_gpt --device cpu --weights run --temperature 0 --tokens 30 --stop '<e>' "$@"; }
  $ ask --chat --prompt 'who sits?'
  the cat sits.
  $ ask --chat --prompt 'who sleeps?' > sleeps
  $ ask --chat --prompt 'who sits?' --prompt 'who sleeps?' > both; tail -n +3 both | cmp - sleeps; head -2 both
  the cat sits.
  ---------------
  $ printf '\357\273\277who sits?\n{"messages": [{"role": "user", "content": "who sleeps?"}]}\n' > prompts; ask --chat --prompt-file prompts | cmp - both
  $ echo 'who sits?' | ask --chat
  the cat sits.

  $ echo '{"x": 1}' > prompts; ask --prompt-file prompts
  sample_gpt: error: --prompt-file prompts: line 1: expected a text, or an object with a prompt or messages, got {"x": 1}
  [1]
  $ fails ask --system x; fails ask --prompt a --prompt-file b; fails ask --stop ''
  sample_gpt: error: --system: expected --chat (sample_gpt --help lists the flags) [2]
  sample_gpt: error: --prompt-file: expected no --prompt beside it (sample_gpt --help lists the flags) [2]
  sample_gpt: error: --stop: expected a text, got an empty one (sample_gpt --help lists the flags) [2]

# Mistakes

  $ wrong() { tune none "$@" 2>&1 | grep error; }
  $ fails wrong --rows stream; fails wrong --batch-size 900; fails train_gpt --config tiny.toml --data chat --tokenizer bytes --out none
  train_gpt: error: --rows stream: expected a text or JSON lines with a text as --data, got others (train_gpt --help lists the flags) [2]
  train_gpt: error: --data: a step of 900 rows of 100 tokens needs more than the 133 rows of the training documents [1]
  train_gpt: error: --data chat: line 1: expected a tokenizer with a chat template for messages (chat_template.jinja, or chat_template in tokenizer_config.json), got none [1]
  $ fails wrong --graph on
  train_gpt: error: --graph on: expected --rows stream or single, got packed rows, which the host reads (train_gpt --help lists the flags) [2]
  $ echo '{"instruction": "a", "output": "b"}' > chat; tune none
  train_gpt: error: --data chat: expected JSON lines: a text, a prompt and a completion (two texts), or messages in each, got an object of instruction, output. A name that ends in .txt makes a text of any file
  [1]
  $ echo '[{"text": "a"}]' > chat; tune none
  train_gpt: error: --data chat: expected JSON lines: a text, a prompt and a completion (two texts), or messages in each, got a list of objects. A name that ends in .txt makes a text of any file
  [1]
  $ printf plain > chat; tune none --rows packed
  train_gpt: error: --rows packed: expected JSON lines as --data, got another file (train_gpt --help lists the flags)
  [2]
