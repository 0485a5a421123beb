// tokenizer.json, read and written, and GPT-2's vocab.json with merges.txt, which hold its two
// largest parts.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <unordered_map>

#include "data/io/file.h"
#include "data/io/partial_file.h"
#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/splitter.h"
#include "tensor/error.h"

namespace redspine {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;
using Ids = std::unordered_map<std::string, std::int32_t>;  // by the spelling in the file

Json parse(std::string_view text, const TokenizerSource& source) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    source.fail(fmt::format("is no JSON: {}", error.what()));
  }
}

/// A member of an object; null if there is none.
const Json& member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string start_of(const Json& value) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

bool is_true(const Json& value) { return value.is_boolean() && value.get<bool>(); }

void reject(const Json& value, const char* name, const TokenizerSource& source) {
  if (value.is_null() || value == false || value == "" || value == 0) return;
  source.fail(fmt::format("{} is {}; legal: null, as other values are not supported", name,
                          start_of(value)));
}

std::int32_t read_id(const Json& value, const std::string& name, const TokenizerSource& source) {
  const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
  if (id < 0 || id >= kMaxVocabSize) {
    source.fail(fmt::format("token \"{}\" has id {}; legal: 0 to {}", name, start_of(value),
                            kMaxVocabSize - 1));
  }
  return static_cast<std::int32_t>(id);
}

std::string& slot(BpeModel& model, std::int32_t id) {
  const auto at = static_cast<std::size_t>(id);
  if (at >= model.tokens.size()) model.tokens.resize(at + 1);
  return model.tokens[at];
}

void add_added_tokens(const Json& list, BpeModel& model, const TokenizerSource& source) {
  if (list.is_null()) return;
  if (!list.is_array()) source.fail("added_tokens is no list");
  for (const Json& item : list) {
    const Json& name = member(item, "content");
    if (!name.is_string()) source.fail("added_tokens has an entry without content");
    const auto content = name.get<std::string>();
    const bool is_special = is_true(member(item, "special"));
    const std::int32_t id = read_id(member(item, "id"), content, source);
    std::string& token = slot(model, id);
    if (!token.empty() || content.empty()) {
      source.fail(
          fmt::format("added token \"{}\" has id {}, which \"{}\" has too; legal: a name and "
                      "an id of its own",
                      content, id, token));
    }
    token = content;
    using Kind = AddedToken::Kind;
    model.added_tokens.push_back({.name = content,
                                  .id = id,
                                  .kind = is_special ? Kind::special : Kind::always,
                                  .is_single_word = is_true(member(item, "single_word")),
                                  .takes_left_space = is_true(member(item, "lstrip")),
                                  .takes_right_space = is_true(member(item, "rstrip")),
                                  .is_normalized = is_true(member(item, "normalized"))});
  }
}

/// An added token that is in the vocabulary, too, has one id in both.
void check_id(const AddedToken& token, std::int32_t id, const TokenizerSource& source) {
  if (token.id == id) return;
  source.fail(
      fmt::format("token \"{}\" has id {}, and {} as an added token", token.name, id, token.id));
}

/// Adds the tokens of `vocab`. Its bytes are what an added token is to the merges; one whose name
/// spells none stays outside.
Ids add_vocabulary(const Json& vocab, BpeModel& model, const TokenizerSource& source) {
  if (!vocab.is_object() || vocab.empty()) {
    source.fail("has no vocabulary; legal: an object of token names and ids");
  }
  std::unordered_map<std::string_view, AddedToken*> added;
  for (AddedToken& token : model.added_tokens) added.emplace(token.name, &token);
  Ids ids;
  for (const auto& [name, value] : vocab.items()) {
    const std::int32_t id = read_id(value, name, source);
    const auto found = added.find(name);
    const bool is_added = found != added.end();
    if (is_added) check_id(*found->second, id, source);
    const std::optional<std::string> bytes = read_spelling(name);
    if (!bytes || bytes->empty()) {
      if (is_added) continue;
      source.fail(
          fmt::format("token {} is called \"{}\"; legal: characters that stand for bytes, or "
                      "an added token",
                      id, name));
    }
    std::string& token = slot(model, id);
    if (is_added) {
      found->second->is_in_vocabulary = true;
    } else if (!token.empty()) {
      source.fail(fmt::format("two tokens have the id {}; legal: one", id));
    }
    token = *bytes;
    ids.emplace(name, id);
  }
  return ids;
}

void add_merge(const std::string& left, const std::string& right, const Ids& ids, BpeModel& model,
               const TokenizerSource& source) {
  const auto id_of = [&](const std::string& name) {
    const auto found = ids.find(name);
    if (found == ids.end()) {
      source.fail(
          fmt::format("merge {} of \"{}\" and \"{}\" needs the token \"{}\", which the "
                      "vocabulary lacks",
                      model.merges.size(), left, right, name));
    }
    return found->second;
  };
  model.merges.push_back({id_of(left), id_of(right), id_of(left + right),
                          static_cast<std::int32_t>(model.merges.size())});
}

/// "a b", as merges are spelled in files of lines and in older JSON.
void add_merge_line(const std::string& line, const Ids& ids, BpeModel& model,
                    const TokenizerSource& source) {
  const std::size_t space = line.find(' ');
  if (space == 0 || space == std::string::npos || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string::npos) {
    source.fail(fmt::format("merge {} is \"{}\"; legal: two tokens with a space between them",
                            model.merges.size(), line));
  }
  add_merge(line.substr(0, space), line.substr(space + 1), ids, model, source);
}

void add_merges(const Json& merges, const Ids& ids, BpeModel& model,
                const TokenizerSource& source) {
  if (!merges.is_array()) source.fail("model.merges is no list");
  for (const Json& item : merges) {
    if (item.is_string()) {
      add_merge_line(item.get<std::string>(), ids, model, source);
    } else if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
      add_merge(item[0].get<std::string>(), item[1].get<std::string>(), ids, model, source);
    } else {
      source.fail(fmt::format("merge {} is {}; legal: \"a b\" or [\"a\", \"b\"]",
                              model.merges.size(), start_of(item)));
    }
  }
}

[[noreturn]] void reject_pretokenizer(const Json& value, const TokenizerSource& source) {
  source.fail(
      fmt::format("pre_tokenizer is {}; legal: ByteLevel without prefix space, alone or after "
                  "one Split that isolates a Regex",
                  start_of(value)));
}

bool is_byte_level(const Json& value) {
  return member(value, "type") == "ByteLevel" && !is_true(member(value, "add_prefix_space"));
}

/// ByteLevel cuts by GPT-2's pattern unless it says that it does not.
bool uses_gpt2_pattern(const Json& byte_level) {
  const Json& use_regex = member(byte_level, "use_regex");
  return use_regex.is_null() || is_true(use_regex);
}

std::string read_pattern(const Json& value, const TokenizerSource& source) {
  if (is_byte_level(value) && uses_gpt2_pattern(value)) return std::string(kGpt2Pattern);
  const Json& parts = member(value, "pretokenizers");
  if (member(value, "type") != "Sequence" || !parts.is_array() || parts.size() != 2 ||
      !is_byte_level(parts[1]) || uses_gpt2_pattern(parts[1])) {
    reject_pretokenizer(value, source);
  }
  const Json& regex = member(member(parts[0], "pattern"), "Regex");
  if (member(parts[0], "type") != "Split" || member(parts[0], "behavior") != "Isolated" ||
      is_true(member(parts[0], "invert")) || !regex.is_string()) {
    reject_pretokenizer(value, source);
  }
  return regex.get<std::string>();
}

OrderedJson byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

OrderedJson pretokenizer_of(const BpeModel& model) {
  if (model.pattern == kGpt2Pattern) return byte_level(true);
  const OrderedJson split = {{"type", "Split"},
                             {"pattern", {{"Regex", model.pattern}}},
                             {"behavior", "Isolated"},
                             {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", OrderedJson::array({split, byte_level(false)})}};
}

}  // namespace

BpeModel parse_tokenizer_json(std::string_view text, const TokenizerSource& source) {
  const Json root = parse(text, source);
  const Json& tables = member(root, "model");
  const Json& type = member(tables, "type");
  if (!tables.is_object() || (!type.is_null() && type != "BPE")) {
    source.fail(
        fmt::format("model.type is {}; legal: \"BPE\" in a tokenizer.json", start_of(type)));
  }
  reject(member(root, "normalizer"), "normalizer", source);
  for (const char* name :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
    reject(member(tables, name), name, source);
  }

  BpeModel model;
  model.pattern = read_pattern(member(root, "pre_tokenizer"), source);
  model.is_whole_piece_first = is_true(member(tables, "ignore_merges"));
  add_added_tokens(member(root, "added_tokens"), model, source);
  const Ids ids = add_vocabulary(member(tables, "vocab"), model, source);
  add_merges(member(tables, "merges"), ids, model, source);
  model.end_of_text = find_end_of_text(model, source);
  check(model, source);
  check_is_whole(model, source);
  return model;
}

BpeModel parse_vocab_and_merges(std::string_view vocab, std::string_view merges,
                                const TokenizerSource& source) {
  BpeModel model;
  model.pattern = kGpt2Pattern;
  const Json names = parse(vocab, source);
  const Json& end = member(names, "<|endoftext|>");
  if (!end.is_null()) {
    const std::int32_t id = read_id(end, "<|endoftext|>", source);
    slot(model, id) = "<|endoftext|>";
    model.added_tokens.push_back({"<|endoftext|>", id, AddedToken::Kind::special});
  }
  const Ids ids = add_vocabulary(names, model, source);
  for (std::size_t begin = 0; begin < merges.size();) {
    const std::size_t end_of_line = std::min(merges.find('\n', begin), merges.size());
    std::string line(merges.substr(begin, end_of_line - begin));
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty() && !line.starts_with("#version")) add_merge_line(line, ids, model, source);
    begin = end_of_line + 1;
  }
  model.end_of_text = find_end_of_text(model, source);
  check(model, source);
  check_is_whole(model, source);
  return model;
}

std::string tokenizer_json(const BpeModel& model) {
  std::vector<std::string> names(model.tokens.size());
  for (std::size_t id = 0; id < names.size(); ++id) names[id] = spell_bytes(model.tokens[id]);
  OrderedJson added = OrderedJson::array();
  for (const AddedToken& token : model.added_tokens) {
    names[static_cast<std::size_t>(token.id)] = token.name;
    added.push_back({{"id", token.id},
                     {"content", token.name},
                     {"single_word", token.is_single_word},
                     {"lstrip", token.takes_left_space},
                     {"rstrip", token.takes_right_space},
                     {"normalized", token.is_normalized},
                     {"special", token.kind == AddedToken::Kind::special}});
  }
  OrderedJson::object_t vocab;  // filled at its end: a look-up for each would take quadratic time
  for (std::size_t id = 0; id < names.size(); ++id) {
    if (!names[id].empty()) vocab.push_back({names[id], id});
  }
  OrderedJson merges = OrderedJson::array();
  for (const BpeMerge& merge : model.merges) {
    merges.push_back(names[static_cast<std::size_t>(merge.left)] + " " +
                     names[static_cast<std::size_t>(merge.right)]);
  }
  const OrderedJson root = {{"version", "1.0"},
                            {"truncation", nullptr},
                            {"padding", nullptr},
                            {"added_tokens", added},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", pretokenizer_of(model)},
                            {"post_processor", nullptr},
                            {"decoder", byte_level(true)},
                            {"model",
                             {{"type", "BPE"},
                              {"dropout", nullptr},
                              {"unk_token", nullptr},
                              {"continuing_subword_prefix", nullptr},
                              {"end_of_word_suffix", nullptr},
                              {"fuse_unk", false},
                              {"byte_fallback", false},
                              {"ignore_merges", model.is_whole_piece_first},
                              {"vocab", vocab},
                              {"merges", merges}}}};
  return root.dump(2) + "\n";
}

void save_tokenizer_json(const BpeModel& model, PartialFile& file) {
  const std::string text = tokenizer_json(model);
  file.file().write(std::as_bytes(std::span(text)));
  file.file().sync();
  file.publish();
  sync_folder_of(file.path());
}

}  // namespace redspine
