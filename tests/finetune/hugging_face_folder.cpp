// SPDX-License-Identifier: Apache-2.0
// What the files of a Hugging Face folder say is followed, or refused by name.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/random.h"
#include "io/safetensors.h"
#include "io/torch/torch_object.h"
#include "nn/init.h"
#include "tests/finetune/program.h"

#if WEFT_HAVE_UTF8PROC
namespace weft::tests {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kTokens{"[PAD]", "[UNK]",     "[CLS]", "[SEP]", "[MASK]", "Apple",
                                       "apple", "caf\u00E9", "cafe",  "good",  "bad"};

/// A BERT of one layer, 8 wide, with its tokenizer.
struct SmallBert {
  TemporaryFolder folder;
  nlohmann::json config{{"model_type", "bert"},       {"hidden_size", 8},       {"num_hidden_layers", 1},
                        {"num_attention_heads", 2},   {"intermediate_size", 8}, {"max_position_embeddings", 16},
                        {"hidden_dropout_prob", 0.0}, {"type_vocab_size", 2},   {"attention_probs_dropout_prob", 0.0}};
  nlohmann::json tokenizer = nlohmann::json::object();
  std::string prefix = "bert.";

  std::string path() { return folder / "bert"; }
  /// `classes`: rows of the classifier; 0: none.
  void write_files(int64_t rows, int64_t classes) {
    manual_seed(1);
    std::filesystem::create_directories(path());
    StateDict state;
    const auto add = [&](const std::string& name, Shape shape) {
      state.tensors.push_back({name, Tensor::empty(shape)});
      nn::init_normal_(state.tensors.back().tensor, 1);
    };
    add(prefix + "embeddings.word_embeddings.weight", {rows, 8});
    add(prefix + "embeddings.position_embeddings.weight", {16, 8});
    add(prefix + "embeddings.token_type_embeddings.weight", {2, 8});
    const std::string layer = prefix + "encoder.layer.0.";
    for (const std::string& norm :
         {prefix + "embeddings.LayerNorm", layer + "attention.output.LayerNorm", layer + "output.LayerNorm"}) {
      add(norm + ".gamma", {8});  // as converted from TensorFlow
      add(norm + ".beta", {8});
    }
    for (const std::string& linear : {layer + "attention.self.query", layer + "attention.self.key",
                                      layer + "attention.self.value", layer + "attention.output.dense",
                                      layer + "intermediate.dense", layer + "output.dense", prefix + "pooler.dense"}) {
      add(linear + ".weight", {8, 8});
      add(linear + ".bias", {8});
    }
    if (classes > 0) {
      add("classifier.weight", {classes, 8});
      add("classifier.bias", {classes});
    }
    write_safetensors(path() + "/model.safetensors", state);
    write(path() + "/config.json", config.dump());
    write(path() + "/tokenizer_config.json", tokenizer.dump());
    std::string lines;
    for (const std::string& token : kTokens) lines += token + '\n';
    write(path() + "/vocab.txt", lines);
  }
  void write_data(const std::string& rows, const std::string& header = "sentence\tlabel") {
    for (const char* part : {"train", "dev"})
      write(folder / ("data/" + std::string(part) + ".tsv"), header + '\n' + rows);
  }
  Outcome run(const std::string& flags = "", const std::string& out = "run") {
    return finetune(
        "--device cpu --lr 0 --epochs 1 --overwrite --data " + (folder / "data") + " --weights " + path() + ' ' + flags,
        folder, out);
  }
  /// The line of the dev part.
  std::string score(const std::string& flags = "", const std::string& out = "run") {
    const Outcome outcome = run(flags, out);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const auto found = lines(outcome.output, R"(\{'eval_loss'.*)");
    return found.empty() ? "none" : found.back();
  }
  nlohmann::json read(const std::string& file) { return nlohmann::json::parse(read_text(folder / file)); }
};

TEST(HuggingFaceFolder, SaysWhetherCaseAndAccentsCount) {
  SmallBert bert;
  const auto score_of = [&](const std::string& word) {
    bert.write_data(word + "\t1\ngood\t0\n");
    return bert.score();
  };
  bert.write_files(11, 2);
  EXPECT_EQ(score_of("Apple"), score_of("apple"));
  EXPECT_EQ(score_of("caf\u00E9"), score_of("cafe"));
  EXPECT_EQ(bert.read("run/checkpoint-1/tokenizer_config.json")["do_lower_case"], true);
  bert.tokenizer = {{"do_lower_case", false}};
  bert.write_files(11, 2);
  EXPECT_NE(score_of("Apple"), score_of("apple"));
  EXPECT_NE(score_of("caf\u00E9"), score_of("cafe"));
  EXPECT_EQ(bert.read("run/checkpoint-1/tokenizer_config.json")["do_lower_case"], false);
  bert.tokenizer = {{"do_lower_case", true}, {"strip_accents", false}};
  bert.write_files(11, 2);
  EXPECT_EQ(score_of("Apple"), score_of("apple"));
  EXPECT_NE(score_of("caf\u00E9"), score_of("cafe"));
  // A vocabulary named by hand has the tokenizer beside it, too.
  const std::string cased = score_of("Caf\u00E9");
  EXPECT_EQ(bert.score("--vocab " + bert.path() + "/vocab.txt"), cased);
}

TEST(HuggingFaceFolder, MayHaveSeveralDictsOfWeights) {
  SmallBert bert;
  bert.write_files(11, 2);
  bert.write_data("good\t1\nbad\t0\n");
  const std::string plain = bert.score(), file = bert.path() + "/model.safetensors";
  TorchObject::Dict weights, average;
  for (const NamedTensor& entry : read_safetensors(file).state.tensors) {
    weights.emplace_back(entry.name, TorchObject{entry.tensor});
    average.emplace_back(entry.name, TorchObject{zeros_like(entry.tensor)});
  }
  TorchObject::Dict both;
  both.emplace_back("model", TorchObject{std::move(weights)});
  both.emplace_back("model_ema", TorchObject{std::move(average)});
  write_torch(bert.path() + "/pytorch_model.bin", TorchObject{std::move(both)});
  std::filesystem::remove(file);
  EXPECT_THAT(bert.run().output, HasSubstr("Choose one: --weights-key model"));
  EXPECT_EQ(bert.score("--weights-key model"), plain);
  EXPECT_NE(bert.score("--weights-key model_ema"), plain);
}

TEST(HuggingFaceFolder, MayHaveTokenizerJsonAlone) {
  SmallBert bert;
  bert.write_files(11, 2);
  bert.write_data("Apple new\t1\ngood bad\t0\n");
  const std::string lower = bert.score();
  nlohmann::json vocabulary = nlohmann::json::object();
  for (size_t id = 0; id < kTokens.size(); ++id) vocabulary[kTokens[id]] = id;
  nlohmann::json whole{{"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
                       {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", vocabulary}}}};
  write(bert.path() + "/tokenizer.json", whole.dump());
  std::filesystem::remove(bert.path() + "/vocab.txt");
  std::filesystem::remove(bert.path() + "/tokenizer_config.json");
  EXPECT_EQ(bert.score(), lower);
  EXPECT_EQ(bert.read("run/checkpoint-1/tokenizer.json"), whole) << "it is kept";
  whole["normalizer"]["lowercase"] = false;
  write(bert.path() + "/tokenizer.json", whole.dump());
  EXPECT_NE(bert.score(), lower);
  EXPECT_EQ(bert.read("run/checkpoint-1/tokenizer_config.json")["do_lower_case"], false)
      << "Hugging Face's class would else take it for true";
  whole["normalizer"] = {{"type", "NFKC"}};
  write(bert.path() + "/tokenizer.json", whole.dump());
  EXPECT_THAT(bert.run().output, HasSubstr("tokenizer.json: expected normalizer BertNormalizer, got 'NFKC'"));
  whole["normalizer"] = nullptr;
  whole["model"]["vocab"] = {{"other", 0}};
  write(bert.path() + "/tokenizer.json", whole.dump());
  bert.write_files(11, 2);
  EXPECT_THAT(bert.run().output,
              HasSubstr("vocab.txt and tokenizer.json do not agree: the token 0 is '[PAD]' and 'other'"));
}

TEST(HuggingFaceFolder, NamesItsTokens) {
  SmallBert bert;
  bert.tokenizer = {{"added_tokens_decoder", {{"11", {{"content", "GOOD bad"}, {"normalized", false}}}}},
                    {"additional_special_tokens", {"Apple"}}};
  bert.write_files(12, 2);
  bert.write_data("a GOOD bad\t1\nApple\t0\n");
  const std::string added = bert.score();
  bert.write_data("a good bad\t1\napple\t0\n");
  EXPECT_NE(bert.score(), added);
  bert.write_files(11, 2);  // a row too few for the token
  bert.write_data("a GOOD bad\t1\nApple\t0\n");
  EXPECT_THAT(bert.run().output, HasSubstr("the token 'GOOD bad' has the id 11, but the weights' embeddings have 11 "
                                           "rows (vocab_size)"));
  bert.write_files(40, 2);  // padded
  EXPECT_EQ(bert.run().exit_code, 0);
  bert.config["vocab_size"] = 41;
  bert.write_files(40, 2);
  EXPECT_THAT(bert.run().output, HasSubstr("the word embeddings have 40 rows, config.json says vocab_size 41"));
  bert.config.erase("vocab_size");
  bert.tokenizer = {{"cls_token", "good"}, {"sep_token", {{"content", "bad"}}}, {"pad_token", "[MASK]"}};
  bert.write_files(11, 2);
  EXPECT_NE(bert.score(), added);
  EXPECT_EQ(bert.read("run/checkpoint-1/config.json")["pad_token_id"], 4);
  bert.tokenizer = {{"cls_token", "<s>"}};
  bert.write_files(11, 2);
  EXPECT_THAT(bert.run().output, HasSubstr("vocab.txt: vocabulary: expected the token <s> among 11 tokens"));
}

constexpr int kOfTheRate = 1;  // that of these runs is 0

int warnings_of(const std::string& output) {
  int warnings = 0;
  for (size_t at = 0; (at = output.find("warning: ", at)) != std::string::npos; ++at) ++warnings;
  return warnings;
}

TEST(HuggingFaceFolder, SaysWhichClassIsWhich) {
  SmallBert bert;
  bert.config["id2label"] = {{"0", "pos"}, {"1", "Neg"}};
  bert.config["label2id"] = {{"pos", 0}, {"Neg", 1}};
  bert.write_files(11, 2);
  bert.write_data("good\tpos\nbad bad\tneg\napple\tneg\n");
  const Outcome by_name = bert.run("--max-length 16");
  EXPECT_EQ(warnings_of(by_name.output), kOfTheRate);
  const std::string named = bert.score();
  EXPECT_EQ(bert.read("run/checkpoint-1/config.json")["id2label"], bert.config["id2label"]);
  EXPECT_EQ(bert.read("run/checkpoint-1/config.json")["label2id"], bert.config["label2id"]);
  bert.write_data("good\t0\nbad bad\t1\napple\t1\n");
  EXPECT_EQ(bert.score(), named);
  EXPECT_THAT(bert.run().output,
              HasSubstr("warning: the labels 0, 1 are taken as the numbers of config.json's pos, Neg"));
  bert.write_data("good\tspam\nbad bad\tham\napple\tham\n");
  EXPECT_THAT(bert.run().output, HasSubstr("warning: the weights tell pos, Neg, the labels are ham, spam: a new head"));
  EXPECT_EQ(bert.read("run/checkpoint-1/config.json")["id2label"], nlohmann::json({{"0", "ham"}, {"1", "spam"}}));
  bert.write_data("good\tpos\nbad bad\tneg\napple\tother\n");
  EXPECT_THAT(bert.run().output,
              HasSubstr("warning: the weights tell pos, Neg, the labels are neg, other, pos: a new head"));
  write(bert.folder / "data/train.tsv", "sentence\tlabel\ngood\tpos\nbad\tneg\n");
  EXPECT_THAT(bert.run().output, HasSubstr("the label 'other' is none of the model's: pos, Neg"));
}

TEST(HuggingFaceFolder, OfARegressionHasOneScore) {
  SmallBert bert;
  bert.config["problem_type"] = "regression";
  bert.config["num_labels"] = 1;
  bert.write_files(11, 1);
  bert.write_data("a\t0\tgood\tbad\t2.5\nb\t1\tgood\tgood\t5\nc\t2\tbad\tapple\t0.000\n",
                  "genre\tindex\tsentence1\tsentence2\tscore");
  const Outcome run = bert.run();
  EXPECT_EQ(lines(run.output, R"(\{'eval_loss': [0-9.e-]+, 'eval_pearson': [-0-9.e]+, 'eval_spearmanr': [-0-9.e]+, )"
                              R"('eval_combined_score': [-0-9.e]+, 'epoch': 1.0\})")
                .size(),
            1u)
      << run.output;
  EXPECT_THAT(run.output, HasSubstr("train.tsv: 3 pairs, 3 different scores"));
  const nlohmann::json config = bert.read("run/checkpoint-1/config.json");
  EXPECT_EQ(config["problem_type"], "regression");
  EXPECT_EQ(config["num_labels"], 1);
  EXPECT_THAT(bert.run("--problem-type single_label_classification").output,
              HasSubstr("warning: the weights tell 1 classes, the labels are 0.000, 2.5, 5: a new head"));
  bert.config["problem_type"] = "single_label_classification";
  bert.config["num_labels"] = 2;
  bert.write_files(11, 2);
  EXPECT_THAT(bert.run().output, HasSubstr("the labels are scores, but config.json says problem_type "
                                           "single_label_classification. --problem-type says which it is"));
  bert.write_data("good\tx\nbad\t1.5\n");
  EXPECT_THAT(bert.run("--problem-type regression").output,
              HasSubstr("expected numbers as labels of a regression, got 'x'"));
}

TEST(HuggingFaceFolder, CutsTextsWhereTheModelEnds) {
  SmallBert bert;
  bert.write_files(11, 2);
  std::string text = "good";
  for (int i = 0; i < 40; ++i) text += " bad";
  bert.write_data(text + "\t0\napple\t1\n");
  EXPECT_THAT(bert.run().output,
              HasSubstr("warning: --max-length 128: texts are cut after 16 tokens, which is all that "
                        "the model has positions for"));
  bert.tokenizer["model_max_length"] = 8;
  bert.write_files(11, 2);
  const std::string cut = bert.score();
  EXPECT_THAT(bert.run().output,
              HasSubstr("texts are cut after 8 tokens, which is all that the model takes (model_max_length)"));
  bert.tokenizer["truncation_side"] = "left";  // the end stays
  bert.write_files(11, 2);
  EXPECT_NE(bert.score(), cut);
  bert.tokenizer["model_max_length"] = nlohmann::json::parse("1000000000000000019884624838656");  // no limit
  bert.write_files(11, 2);
  EXPECT_THAT(bert.run().output, HasSubstr("texts are cut after 16 tokens"));
}

TEST(HuggingFaceFolder, HasWeightsUnderOldAndNewNames) {
  SmallBert bert;
  bert.write_files(11, 2);
  bert.write_data("good\t1\nbad\t0\n");
  EXPECT_EQ(warnings_of(bert.run("--max-length 16").output), kOfTheRate);
  bert.prefix = "";  // the encoder alone
  bert.write_files(11, 0);
  EXPECT_THAT(bert.run().output, HasSubstr("warning: these weights start at random, " + bert.path() +
                                           "/model.safetensors has none that fit: classifier.weight, classifier.bias"));
  bert.prefix = "bert.";
  bert.write_files(11, 3);
  EXPECT_THAT(bert.run().output, HasSubstr("classifier.weight (expected [2,8], got [3,8])"));
}

TEST(HuggingFaceFolder, IsRefusedByName) {
  SmallBert bert;
  bert.write_files(11, 2);
  bert.write_data("good\t1\nbad\t0\n");
  const auto error_of = [&](nlohmann::json& file, const char* key, const nlohmann::json& value) {
    const nlohmann::json before = file;
    file[key] = value;
    bert.write_files(11, 2);
    file = before;
    const Outcome run = bert.run();
    EXPECT_EQ(run.exit_code, 1) << key << ' ' << value << '\n' << run.output;
    return run.output;
  };
  const auto config = [&](const char* key, const nlohmann::json& value) { return error_of(bert.config, key, value); };
  const auto tokenizer = [&](const char* key, const nlohmann::json& value) {
    return error_of(bert.tokenizer, key, value);
  };
  EXPECT_THAT(config("problem_type", "multi_label_classification"),
              HasSubstr("config.json: expected problem_type 'single_label_classification' or 'regression', got "
                        "'multi_label_classification'"));
  EXPECT_THAT(config("hidden_act", "mish"), HasSubstr("expected hidden_act gelu, gelu_python, gelu_new, "));
  EXPECT_THAT(config("position_embedding_type", "relative_key"),
              HasSubstr("expected position_embedding_type 'absolute', got 'relative_key'"));
  EXPECT_THAT(config("is_decoder", true), HasSubstr("expected is_decoder 'false', got 'true'"));
  EXPECT_THAT(config("add_cross_attention", true), HasSubstr("expected add_cross_attention 'false', got 'true'"));
  EXPECT_THAT(config("pruned_heads", {{"0", {1}}}), HasSubstr("expected pruned_heads '{}', got '{\"0\":[1]}'"));
  EXPECT_THAT(config("quantization_config", {{"bits", 8}}), HasSubstr("expected no quantization_config, got"));
  EXPECT_THAT(config("architectures", {"AlbertModel"}),
              HasSubstr("expected architectures of Bert… as model_type is 'bert', got 'AlbertModel'"));
  EXPECT_THAT(config("num_attention_heads", 3),
              HasSubstr("expected hidden_size that num_attention_heads divides, got 8 and 3"));
  EXPECT_THAT(config("id2label", {{"0", "a"}, {"2", "b"}}),
              HasSubstr("expected the ids 0 to 2 - 1 in id2label, got '2'"));
  EXPECT_THAT(config("id2label", {{"0", "a"}, {"1", "a"}}), HasSubstr("id2label gives the name 'a' twice"));
  bert.config["label2id"] = {{"a", 1}, {"b", 0}};
  EXPECT_THAT(config("id2label", {{"0", "a"}, {"1", "b"}}), HasSubstr("id2label and label2id disagree on '"));
  bert.config.erase("label2id");
  bert.config["num_labels"] = 3;
  EXPECT_THAT(config("id2label", {{"0", "a"}, {"1", "b"}}), HasSubstr("num_labels is 3, id2label names 2"));
  bert.config.erase("num_labels");
  EXPECT_THAT(tokenizer("padding_side", "left"), HasSubstr("expected padding_side \"right\", got \"left\""));
  EXPECT_THAT(tokenizer("do_basic_tokenize", false), HasSubstr("expected do_basic_tokenize true, got false"));
  EXPECT_THAT(tokenizer("never_split", {"good"}),
              HasSubstr("expected never_split of special tokens alone, got \"good\""));
  EXPECT_THAT(tokenizer("tokenizer_class", "BertJapaneseTokenizer"),
              HasSubstr("expected tokenizer_class BertTokenizer, DistilBertTokenizer, ElectraTokenizer, got "
                        "'BertJapaneseTokenizer'"));
  EXPECT_THAT(tokenizer("tokenizer_class", "PreTrainedTokenizerFast"), HasSubstr("needs a tokenizer.json"));
  EXPECT_THAT(tokenizer("model_max_length", 2), HasSubstr("expected model_max_length of at least 3, got 2"));
  EXPECT_THAT(tokenizer("do_lower_case", "no"), HasSubstr("expected a tokenizer of Hugging Face's, got"));
  bert.config["type_vocab_size"] = 1;
  bert.write_files(11, 2);
  EXPECT_EQ(bert.run().exit_code, 1);
  std::filesystem::remove(bert.path() + "/vocab.txt");
  EXPECT_THAT(bert.run().output, HasSubstr("/vocab.txt nor tokenizer.json beside the weights: name the vocabulary"));
}

TEST(HuggingFaceFolder, TakesOtherActivationsAndRatesOfDropout) {
  SmallBert bert;
  bert.write_data("good\t1\nbad\t0\napple\t0\n");
  std::vector<std::string> scores;
  for (const char* name : {"gelu", "gelu_new", "relu", "silu"}) {
    bert.config["hidden_act"] = name;
    bert.config["attention_probs_dropout_prob"] = 0.25;
    bert.write_files(11, 2);
    scores.push_back(bert.score());
    EXPECT_EQ(bert.read("run/checkpoint-1/config.json")["hidden_act"], name);
    EXPECT_EQ(bert.read("run/checkpoint-1/config.json")["attention_probs_dropout_prob"], 0.25);
  }
  EXPECT_NE(scores[0], scores[2]);
  EXPECT_NE(scores[0], scores[3]);
  EXPECT_NE(scores[2], scores[3]);
}

TEST(FinetuneData, IsFoundOrNamed) {
  SmallBert bert;
  bert.write_files(11, 2);
  const auto run = [&](const std::string& flags = "") { return bert.run("--dry-run " + flags).output; };
  std::filesystem::create_directories(bert.folder / "data");
  EXPECT_THAT(run(), HasSubstr("--data: there is no train.tsv in the folder"));
  write(bert.folder / "data/train.csv", "question,answer,label\n\"good, bad\",good,1\nbad,good,0\n");
  write(bert.folder / "data/validation.jsonl", "{\"question\": \"good\", \"answer\": \"bad\", \"label\": 1}\n");
  EXPECT_THAT(run(), HasSubstr("train.csv: 2 pairs, 2 classes; validation.jsonl: 1 pairs, 1 classes"));
  write(bert.folder / "data/validation.tsv", "question\tanswer\tlabel\ta note\ngood\tbad\t1\tx\n");
  EXPECT_THAT(run(), HasSubstr("has validation.tsv, validation.jsonl. --validation-file says which it is"));
  EXPECT_THAT(run("--validation-file validation.tsv"),
              HasSubstr("warning: data: validation.tsv: 1 pairs, 1 classes: these columns are not used: a note."));
  EXPECT_THAT(run("--validation-file validation.jsonl --text-column-names answer"),
              HasSubstr("train.csv: 2 sentences"));
  EXPECT_THAT(run("--validation-file validation.jsonl --text-column-names a,b,c"),
              HasSubstr("--text-column-names: expected one or two names, got 'a,b,c'"));
  EXPECT_THAT(run("--validation-file validation.jsonl --label-column-name gold"),
              HasSubstr("train.csv:1: expected a column named 'gold', got question, answer, label"));
  write(bert.folder / "data/train.csv", "question,answer\ngood,good\n");
  EXPECT_THAT(run("--validation-file validation.jsonl"),
              HasSubstr("expected labels in train.csv: 1 pairs, 0 classes, got none"));
}

}  // namespace
}  // namespace weft::tests
#endif
