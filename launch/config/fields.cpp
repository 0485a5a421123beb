#include "launch/config/fields.h"

#include <fmt/format.h>

#include <utility>

#include "data/tokenizer/utf8.h"
#include "tensor/enum_words.h"

namespace redspine {
namespace {

template <class Enum>
Choice choice(Enum& value) {
  return {.words = words_of<Enum>(),
          .get = [&value] { return static_cast<std::size_t>(value); },
          .set = [&value](std::size_t index) { value = static_cast<Enum>(index); }};
}

/// The shortest text that reads back to the same bits, as YAML 1.1 reads numbers too: to it 1e-08
/// is a word, and 1.0e-08 the number.
std::string text_of_number(double number) {
  std::string text = fmt::format("{}", number);
  const std::size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos) {
    text.insert(exponent, ".0");
  }
  return text;
}

/// What may stand in a file of YAML as it is: no control characters, and no line breaks of Unicode,
/// which YAML 1.1 folds.
bool is_printable(char32_t c) {
  const bool is_control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  const bool is_line_break = c == 0x2028 || c == 0x2029;
  return !is_control && !is_line_break && c != 0xFEFF && c != 0xFFFE && c != 0xFFFF;
}

}  // namespace

std::vector<Field> fields_of(Config& config) {
  auto& [run, model, data, batch, parallel, optimizer, schedule, train, checkpoint] = config;
  return {
      {"run.name", &run.name},
      {"run.output_dir", &run.output_dir},
      {"run.seed", &run.seed},
      {"run.device", choice(run.device)},
      {"run.precision", choice(run.precision)},
      {"run.collectives", choice(run.collectives)},

      {"model.family", choice(model.family)},
      {"model.num_layers", &model.num_layers},
      {"model.hidden_size", &model.hidden_size},
      {"model.num_heads", &model.num_heads},
      {"model.num_kv_heads", &model.num_kv_heads},
      {"model.ffn_size", &model.ffn_size},
      {"model.vocab_size", &model.vocab_size},
      {"model.max_sequence_length", &model.max_sequence_length},
      {"model.position", choice(model.position)},
      {"model.rope.theta", &model.rope.theta},
      {"model.rope.scaling", choice(model.rope.scaling)},
      {"model.rope.factor", &model.rope.factor},
      {"model.rope.original_length", &model.rope.original_length},
      {"model.rope.beta_fast", &model.rope.beta_fast},
      {"model.rope.beta_slow", &model.rope.beta_slow},
      {"model.rope.low_freq_factor", &model.rope.low_freq_factor},
      {"model.rope.high_freq_factor", &model.rope.high_freq_factor},
      {"model.rope.attention_factor", &model.rope.attention_factor},
      {"model.norm", choice(model.norm)},
      {"model.norm_epsilon", &model.norm_epsilon},
      {"model.activation", choice(model.activation)},
      {"model.bias", &model.bias},
      {"model.tie_embeddings", &model.tie_embeddings},
      {"model.dropout", &model.dropout},

      {"data.train", &data.train},
      {"data.validation", &data.validation},
      {"data.format", choice(data.format)},
      {"data.tokenizer", &data.tokenizer},

      {"batch.sequence_length", &batch.sequence_length},
      {"batch.global_batch_size", &batch.global_batch_size},
      {"batch.micro_batch_size", &batch.micro_batch_size},

      {"parallel.tensor", &parallel.tensor},
      {"parallel.sequence", &parallel.sequence},
      {"parallel.optimizer", choice(parallel.optimizer)},
      {"parallel.recompute", choice(parallel.recompute)},

      {"optimizer.learning_rate", &optimizer.learning_rate},
      {"optimizer.beta1", &optimizer.beta1},
      {"optimizer.beta2", &optimizer.beta2},
      {"optimizer.epsilon", &optimizer.epsilon},
      {"optimizer.weight_decay", &optimizer.weight_decay},
      {"optimizer.max_gradient_norm", &optimizer.max_gradient_norm},

      {"schedule.kind", choice(schedule.kind)},
      {"schedule.warmup_steps", &schedule.warmup_steps},
      {"schedule.decay_steps", &schedule.decay_steps},
      {"schedule.min_ratio", &schedule.min_ratio},

      {"train.steps", &train.steps},
      {"train.log_interval", &train.log_interval},
      {"train.eval_interval", &train.eval_interval},
      {"train.eval_batches", &train.eval_batches},

      {"checkpoint.interval", &checkpoint.interval},
      {"checkpoint.keep", &checkpoint.keep},
      {"checkpoint.keep_every", &checkpoint.keep_every},
      {"checkpoint.resume", &checkpoint.resume},
      {"checkpoint.initialize_from", &checkpoint.initialize_from},
      {"checkpoint.async", &checkpoint.async},
      {"checkpoint.verify", &checkpoint.verify},
  };
}

std::vector<Field> fields_of(DataFileConfig& file, const std::string& entry) {
  return {{entry + ".path", &file.path}, {entry + ".weight", &file.weight}};
}

std::vector<Setting> recorded_settings(Config config) {
  std::vector<Setting> settings;
  for (const Field& field : fields_of(config)) {
    settings.push_back({field.key, text_of(field.value)});
  }
  return settings;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const CodePoint point = code_point_at(text, 0);
    if (point.value == '"' || point.value == '\\') {
      result += '\\';
      result += static_cast<char>(point.value);
    } else if (is_printable(point.value)) {
      result += text.substr(0, point.length);
    } else if (point.value < 0x100) {
      result += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(point.value));
    } else {
      result += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point.value));
    }
    text.remove_prefix(point.length);
  }
  return result + '"';
}

std::string text_of(const FieldValue& value) {
  struct Writer {
    std::string operator()(const std::int64_t* number) const { return fmt::format("{}", *number); }
    std::string operator()(const std::uint64_t* number) const { return fmt::format("{}", *number); }
    std::string operator()(const double* number) const { return text_of_number(*number); }
    std::string operator()(const std::optional<double>* number) const {
      return *number ? text_of_number(**number) : "";
    }
    std::string operator()(const bool* flag) const { return *flag ? "true" : "false"; }
    std::string operator()(const std::string* text) const { return quoted(*text); }
    std::string operator()(const Choice& choice) const {
      return std::string(choice.words[choice.get()]);
    }
    std::string operator()(const std::vector<DataFileConfig>* files) const {
      std::string list;
      for (const DataFileConfig& file : *files) {
        if (!list.empty()) list += ", ";
        list +=
            fmt::format("{{path: {}, weight: {}}}", quoted(file.path), text_of_number(file.weight));
      }
      return "[" + list + "]";
    }
  };
  return std::visit(Writer{}, value);
}

}  // namespace redspine
