# What the files of a Hugging Face folder say is followed, or refused by name.

needs: utf8proc zip

A small BERT and a few texts. At a rate of 0 the score of the dev part is that of the weights.

  $ bert() { "$WEFT"/tests/finetune/small_bert.py "$@"; }
  $ rows() { mkdir -p data; { printf '%b\n' "${header:-sentence\tlabel}" "$@"; } | tee data/train.tsv > data/dev.tsv; }
  $ tune() { finetune --device cpu --lr 0 --epochs 1 --overwrite --data data --weights bert --out run "$@" 2>&1; }
  $ score() { tune "$@" | grep "^{'eval_loss"; }
  $ says() { tune "$@" | grep 'warning\|error' | grep -v 'rate is 0'; }
  $ saved() { jq -c "$2" run/checkpoint-1/$1.json; }
  $ same_score() { [ "$1" ] && [ "$2" ] || echo 'no score'; [ "$1" = "$2" ] && echo same || echo other; }

Whether case and accents count.

  $ of_word() { rows "$1\t1" 'good\t0'; score; }
  $ bert; same_score "$(of_word Apple)" "$(of_word apple)"; same_score "$(of_word café)" "$(of_word cafe)"; saved tokenizer_config .do_lower_case
  same
  same
  true
  $ bert --tokenizer '{"do_lower_case": false}'; same_score "$(of_word Apple)" "$(of_word apple)"; same_score "$(of_word café)" "$(of_word cafe)"; saved tokenizer_config .do_lower_case
  other
  other
  false
  $ bert --tokenizer '{"do_lower_case": true, "strip_accents": false}'; same_score "$(of_word Apple)" "$(of_word apple)"; same_score "$(of_word café)" "$(of_word cafe)"
  same
  other

A vocabulary named by hand has the tokenizer beside it, too.

  $ same_score "$(of_word Café)" "$(score --vocab bert/vocab.txt)"
  same

XLM-RoBERTa and CamemBERT have RoBERTa's layers and a unigram model.

  $ unigram() { bert --prefix roberta. --config "{\"model_type\": \"${kind:-xlm-roberta}\"}" --tokenizer "${2:-{\}}"; rm bert/vocab.txt; jq -nc "{pre_tokenizer: {type: \"Metaspace\"}, model: {type: \"Unigram\", unk_id: 3, vocab: [[\"<s>\", 0], [\"<pad>\", 0], [\"</s>\", 0], [\"<unk>\", 0], [\"▁good\", $1], [\"▁bad\", -1], [\"▁go\", -2], [\"od\", -2]]}}" > bert/tokenizer.json; }
  $ rows 'good bad\t1' 'bad\t0'; unigram -1; whole=$(score); cmp bert/tokenizer.json run/checkpoint-1/tokenizer.json; saved config '[.model_type, .architectures]'
  ["xlm-roberta",["XLMRobertaForSequenceClassification"]]
  $ unigram -3; same_score "$whole" "$(score)"; unigram -5; same_score "$whole" "$(score)"
  same
  other
  $ kind=camembert unigram -1 '{"tokenizer_class": "CamembertTokenizer"}'; same_score "$whole" "$(score)"; saved config .model_type
  same
  "camembert"
  $ unigram -1 '{"tokenizer_class": "T5Tokenizer"}'; says
  finetune: error: bert: expected tokenizer_class XLMRobertaTokenizer or CamembertTokenizer of a unigram model, got 'T5Tokenizer'
  [1]
  $ unigram -1 '{"cls_token": "[CLS]"}'; says
  finetune: error: bert: expected cls_token '<s>' of a unigram model, got '[CLS]'
  [1]
  $ unigram -1 '{"added_tokens_decoder": {"9": {"content": "new"}}}'; says
  finetune: error: bert: the added token 'new' has the id 9, in tokenizer.json -1
  [1]

A file may have several dicts of weights.

  $ bert; rows 'good\t1' 'bad\t0'; plain=$(score); bert --dicts; says
  finetune: error: pytorch: bert/pytorch_model.bin: the file holds several dicts of weights: model, model_ema. Choose one: --weights-key model (weft-weights: --key model), or write it alone: weft-weights convert --key model FILE NEW.safetensors
  [1]
  $ same_score "$plain" "$(score --weights-key model)"; same_score "$plain" "$(score --weights-key model_ema)"
  same
  other

tokenizer.json may be alone. It is kept.

  $ bert; rows 'Apple new\t1' 'good bad\t0'; lower=$(score)
  $ jq -Rsc '{normalizer: {type: "BertNormalizer", lowercase: true}, model: {type: "WordPiece", unk_token: "[UNK]", vocab: (rtrimstr("\n") | split("\n") | to_entries | map({(.value): .key}) | add)}}' bert/vocab.txt > whole.json
  $ with() { rm -f bert/vocab.txt bert/tokenizer_config.json; jq -c "$1" whole.json > bert/tokenizer.json; }
  $ with .; same_score "$lower" "$(score)"; diff <(jq -S . whole.json) <(jq -S . run/checkpoint-1/tokenizer.json)
  same
  $ with '.normalizer.lowercase = false'; same_score "$lower" "$(score)"; saved tokenizer_config .do_lower_case
  other
  false
  $ with '.normalizer = {type: "NFKC"}'; says
  finetune: error: bert: tokenizer.json: expected normalizer BertNormalizer, got 'NFKC'
  [1]
  $ bert; jq -c '.normalizer = null | .model.vocab = {other: 0}' whole.json > bert/tokenizer.json; says
  finetune: error: bert: vocab.txt and tokenizer.json do not agree: the token 0 is '[PAD]' and 'other'. --vocab names the one that counts
  [1]

The names of tokens.

  $ added='{"added_tokens_decoder": {"11": {"content": "GOOD bad", "normalized": false}}, "additional_special_tokens": ["Apple"]}'
  $ bert --rows 12 --tokenizer "$added"; rows 'a GOOD bad\t1' 'Apple\t0'; special=$(score); rows 'a good bad\t1' 'apple\t0'; same_score "$special" "$(score)"
  other
  $ rows 'a GOOD bad\t1' 'Apple\t0'; bert --tokenizer "$added"; says
  warning: --max-length 128: texts are cut after 16 tokens, which is all that the model has positions for
  finetune: error: data: train.tsv: 2 sentences, 2 classes: the token 'GOOD bad' has the id 11, but the weights' embeddings have 11 rows (vocab_size)
  [1]
  $ bert --rows 40 --tokenizer "$added"; score | wc -l
  1
  $ bert --rows 40 --tokenizer "$added" --config '{"vocab_size": 41}'; says
  finetune: error: bert/model.safetensors: the word embeddings have 40 rows, config.json says vocab_size 41
  [1]
  $ bert --tokenizer '{"cls_token": "good", "sep_token": {"content": "bad"}, "pad_token": "[MASK]"}'; same_score "$special" "$(score)"; saved config .pad_token_id
  other
  4
  $ bert --tokenizer '{"cls_token": "<s>"}'; says
  finetune: error: bert/vocab.txt: vocabulary: expected the token <s> among 11 tokens
  [1]

Which class is which.

  $ names='{"id2label": {"0": "pos", "1": "Neg"}, "label2id": {"pos": 0, "Neg": 1}}'; bert --config "$names"
  $ rows 'good\tpos' 'bad bad\tneg' 'apple\tneg'; says --max-length 16
  [1]
  $ named=$(score); saved config '[.id2label, .label2id]'
  [{"0":"pos","1":"Neg"},{"Neg":1,"pos":0}]
  $ rows 'good\t0' 'bad bad\t1' 'apple\t1'; same_score "$named" "$(score)"; says --max-length 16
  same
  warning: the labels 0, 1 are taken as the numbers of config.json's pos, Neg
  $ rows 'good\tspam' 'bad bad\tham' 'apple\tham'; says --max-length 16; saved config .id2label
  warning: the weights tell pos, Neg, the labels are ham, spam: a new head
  warning: these weights start at random, bert/model.safetensors has none that fit: classifier.weight, classifier.bias
  {"0":"ham","1":"spam"}
  $ rows 'good\tpos' 'bad bad\tneg' 'apple\tother'; says --max-length 16
  warning: the weights tell pos, Neg, the labels are neg, other, pos: a new head
  warning: these weights start at random, bert/model.safetensors has none that fit: classifier.weight, classifier.bias
  $ printf 'sentence\tlabel\ngood\tpos\nbad\tneg\n' > data/train.tsv; says --max-length 16
  finetune: error: data: dev.tsv: 3 sentences, 3 classes: the label 'other' is none of the model's: pos, Neg
  [1]

A regression has one score.

  $ bert --classes 1 --config '{"problem_type": "regression", "num_labels": 1}'
  $ header='genre\tindex\tsentence1\tsentence2\tscore' rows 'a\t0\tgood\tbad\t2.5' 'b\t1\tgood\tgood\t5' 'c\t2\tbad\tapple\t0.000'
  $ tune | grep "^{'eval_loss\|3 pairs"
  data    train.tsv: 3 pairs, 3 different scores; dev.tsv: 3 pairs, 3 different scores; 11 tokens
  \{'eval_loss': [0-9.e-]+, 'eval_pearson': [-0-9.e]+, 'eval_spearmanr': [-0-9.e]+, 'eval_combined_score': [-0-9.e]+, 'epoch': 1.0\} (re)
  $ saved config '[.problem_type, .num_labels]'; says --max-length 16 --problem-type single_label_classification
  ["regression",1]
  warning: the weights tell 1 classes, the labels are 0.000, 2.5, 5: a new head
  warning: these weights start at random, bert/model.safetensors has none that fit: classifier.weight, classifier.bias
  $ bert --config '{"problem_type": "single_label_classification", "num_labels": 2}'; says
  finetune: error: data: data: the labels are scores, but config.json says problem_type single_label_classification. --problem-type says which it is
  [1]
  $ rows 'good\tx' 'bad\t1.5'; says --problem-type regression
  finetune: error: data: data: expected numbers as labels of a regression, got 'x'
  [1]

Texts are cut where the model ends, or the tokenizer says.

  $ bert; rows "good$(printf ' bad%.0s' $(seq 40))\t0" 'apple\t1'; says
  warning: --max-length 128: texts are cut after 16 tokens, which is all that the model has positions for
  $ bert --tokenizer '{"model_max_length": 8}'; cut=$(score); says
  warning: --max-length 128: texts are cut after 8 tokens, which is all that the model takes (model_max_length)
  $ bert --tokenizer '{"model_max_length": 8, "truncation_side": "left"}'; same_score "$cut" "$(score)"
  other
  $ bert --tokenizer '{"model_max_length": 1000000000000000019884624838656}'; says
  warning: --max-length 128: texts are cut after 16 tokens, which is all that the model has positions for

Weights have old names (gamma, beta), or the new ones; the encoder may be alone.

  $ bert; rows 'good\t1' 'bad\t0'; says --max-length 16
  [1]
  $ bert --prefix '' --classes 0; says --max-length 16
  warning: these weights start at random, bert/model.safetensors has none that fit: classifier.weight, classifier.bias
  $ bert --classes 3; says --max-length 16
  warning: these weights start at random, bert/model.safetensors has none that fit: classifier.weight (expected [2,8], got [3,8]), classifier.bias (expected [2], got [3])

Activations and rates of dropout are taken over.

  $ rows 'good\t1' 'bad\t0' 'apple\t0'
  $ for name in gelu gelu_new relu silu; do bert --config '{"hidden_act": "'$name'", "attention_probs_dropout_prob": 0.25}'; score > $name; saved config '[.hidden_act, .attention_probs_dropout_prob]'; done
  ["gelu",0.25]
  ["gelu_new",0.25]
  ["relu",0.25]
  ["silu",0.25]
  $ sort -u gelu relu silu | wc -l
  3

What cannot be followed is refused by name.

  $ config() { bert --config "$1"; says; }
  $ config '{"problem_type": "multi_label_classification"}'
  finetune: error: bert/config.json: expected problem_type 'single_label_classification' or 'regression', got 'multi_label_classification'
  [1]
  $ config '{"hidden_act": "mish"}'
  finetune: error: bert/config.json: expected hidden_act gelu, gelu_python, gelu_new, gelu_pytorch_tanh, gelu_fast, relu, silu, swish, got 'mish'
  [1]
  $ config '{"position_embedding_type": "relative_key"}'
  finetune: error: bert/config.json: expected position_embedding_type 'absolute', got 'relative_key'
  [1]
  $ config '{"is_decoder": true}'
  finetune: error: bert/config.json: expected is_decoder 'false', got 'true'
  [1]
  $ config '{"add_cross_attention": true}'
  finetune: error: bert/config.json: expected add_cross_attention 'false', got 'true'
  [1]
  $ config '{"pruned_heads": {"0": [1]}}'
  finetune: error: bert/config.json: expected pruned_heads '{}', got '{"0":[1]}'
  [1]
  $ config '{"quantization_config": {"bits": 8}}'
  finetune: error: bert/config.json: expected no quantization_config, got '{"bits":8}'
  [1]
  $ config '{"architectures": ["AlbertModel"]}'
  finetune: error: bert/config.json: expected architectures of Bert… as model_type is 'bert', got 'AlbertModel'
  [1]
  $ config '{"num_attention_heads": 3}'
  finetune: error: bert/config.json: expected hidden_size that num_attention_heads divides, got 8 and 3
  [1]
  $ config '{"id2label": {"0": "a", "2": "b"}}'
  finetune: error: bert/config.json: expected the ids 0 to 2 - 1 in id2label, got '2'
  [1]
  $ config '{"id2label": {"0": "a", "1": "a"}}'
  finetune: error: bert/config.json: id2label gives the name 'a' twice
  [1]
  $ config '{"id2label": {"0": "a", "1": "b"}, "label2id": {"a": 1, "b": 0}}'
  finetune: error: bert/config.json: id2label and label2id disagree on 'a'
  [1]
  $ config '{"id2label": {"0": "a", "1": "b"}, "num_labels": 3}'
  finetune: error: bert/config.json: num_labels is 3, id2label names 2
  [1]
  $ config '{"type_vocab_size": 1}'
  warning: --max-length 128: texts are cut after 16 tokens, which is all that the model has positions for
  finetune: error: --weights bert/model.safetensors: 20 tensors loaded; wrong shape: bert.embeddings.token_type_embeddings.weight (expected [1,8], got [2,8])
  [1]
  $ tokenizer() { bert --tokenizer "$1"; says; }
  $ tokenizer '{"padding_side": "left"}'
  finetune: error: bert: expected padding_side "right", got "left": Weft pads after the text
  [1]
  $ tokenizer '{"do_basic_tokenize": false}'
  finetune: error: bert: expected do_basic_tokenize true, got false: Weft parts words before it cuts them
  [1]
  $ tokenizer '{"never_split": ["good"]}'
  finetune: error: bert: expected never_split of special tokens alone, got "good". Add it as a token: tokenizer.add_tokens
  [1]
  $ tokenizer '{"tokenizer_class": "BertJapaneseTokenizer"}'
  finetune: error: bert: expected tokenizer_class BertTokenizer, DistilBertTokenizer, ElectraTokenizer, got 'BertJapaneseTokenizer'
  [1]
  $ tokenizer '{"tokenizer_class": "PreTrainedTokenizerFast"}'
  finetune: error: bert: tokenizer_class 'PreTrainedTokenizer' needs a tokenizer.json
  [1]
  $ tokenizer '{"model_max_length": 2}'
  finetune: error: bert: expected model_max_length of at least 3, got 2
  [1]
  $ tokenizer '{"do_lower_case": "no"}'
  finetune: error: bert/tokenizer_config.json: expected a tokenizer of Hugging Face's, got '[json.exception.type_error.302] type must be boolean, but is string'
  [1]
  $ bert; rm bert/vocab.txt; says
  finetune: error: --vocab: there is no bert/vocab.txt nor tokenizer.json beside the weights: name the vocabulary
  [1]
