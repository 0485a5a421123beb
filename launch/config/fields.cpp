#include "launch/config/fields.h"

#include <fmt/format.h>

#include <utility>

#include "data/tokenizer/utf8.h"

namespace redspine {
namespace {

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
      {"run.name", &run.name,
       "Name of the run, one path component of up to 255 bytes: all its files lie in "
       "`run.output_dir/run.name`"},
      {"run.output_dir", &run.output_dir,
       "Folder of all runs, relative to where the command is started"},
      {"run.seed", &run.seed, "Seed of the initial weights, the order of samples and dropout"},
      {"run.device", choice(run.device),
       "Where to compute; auto: CUDA where every rank sees a GPU, else the CPU"},
      {"run.precision", choice(run.precision),
       "Type of activations and of the weights that they meet; bf16 needs CUDA and keeps fp32 "
       "master weights"},
      {"run.collectives", choice(run.collectives),
       "What carries collectives on device memory; auto: NCCL where every rank has a GPU of its "
       "own, else MPI"},
      {"run.exact", &run.exact,
       "Exact mode: every loss and weight is the same bits on every layout; fp32 on CPUs "
       "(docs/exactness.md)"},
      {"run.exact_leaves", &run.exact_leaves,
       "Exact mode: leaves of every sum over what tensor ranks share, a multiple of "
       "`parallel.tensor`; 0: 8. Another number is another run"},
      {"run.exact_lanes", &run.exact_lanes,
       "Exact mode: lanes of every sum over the global batch, a multiple of the data ranks; 0: 8, "
       "or "
       "the largest power of two that divides the batch. Another number is another run"},
      {"run.check_replicas", &run.check_replicas,
       "Compare the weights' digests of ranks that hold the same in each step, and those of the "
       "moments at each save; a difference ends the run ([exactness](exactness.md#replicas))"},
      {"run.spot_check_interval", &run.spot_check_interval,
       "Every so many steps the next data rank computes one block of a micro-batch again and "
       "compares all bits; a difference ends the run; 0: never "
       "([exactness](exactness.md#spot-checks))"},

      {"model.family", choice(model.family),
       "Presets of the other keys of `model`; a key that is given wins"},
      {"model.num_layers", &model.num_layers, "Transformer blocks, 1 to 10000"},
      {"model.hidden_size", &model.hidden_size,
       "Width of the residual stream, a multiple of `model.num_heads`"},
      {"model.num_heads", &model.num_heads, "Query heads; `parallel.tensor` divides them"},
      {"model.num_kv_heads", &model.num_kv_heads,
       "Key/value heads, a divisor of `model.num_heads`; fewer: grouped-query attention",
       "model.num_heads"},
      {"model.ffn_size", &model.ffn_size,
       "Width inside the MLP, at least `parallel.tensor`; for swiglu that of gate and of up each",
       "4 x model.hidden_size; llama: 8/3 x, rounded up to a multiple of 256"},
      {"model.vocab_size", &model.vocab_size, "Number of token ids, any on any layout"},
      {"model.max_sequence_length", &model.max_sequence_length,
       "Longest sequence, in tokens; the rows of learned positions"},
      {"model.position", choice(model.position),
       "How positions enter: a learned embedding or rotary positions (RoPE)"},
      {"model.rope.theta", &model.rope.theta, "Base of the rotary wavelengths, above 1"},
      {"model.rope.scaling", choice(model.rope.scaling),
       "How the context is extended beyond `model.rope.original_length`"},
      {"model.rope.factor", &model.rope.factor,
       "How many times longer the context is than `model.rope.original_length`, at least 1"},
      {"model.rope.original_length", &model.rope.original_length,
       "Length that the unscaled frequencies were made for, in tokens",
       "model.max_sequence_length"},
      {"model.rope.beta_fast", &model.rope.beta_fast,
       "yarn: above this many turns a dimension is not scaled"},
      {"model.rope.beta_slow", &model.rope.beta_slow,
       "yarn: below this many turns a dimension is scaled in full"},
      {"model.rope.low_freq_factor", &model.rope.low_freq_factor,
       "llama3: `original_length` / this is the longest wavelength that is kept, in tokens"},
      {"model.rope.high_freq_factor", &model.rope.high_freq_factor,
       "llama3: `original_length` / this is the shortest wavelength that is scaled, in tokens"},
      {"model.rope.attention_factor", &model.rope.attention_factor,
       "yarn: scale of cos and sin, above 0", "0.1 ln(model.rope.factor) + 1"},
      {"model.norm", choice(model.norm),
       "Normalization before attention, before the MLP and before the LM head"},
      {"model.norm_epsilon", &model.norm_epsilon,
       "Added to the variance (layernorm) or mean square (rmsnorm), above 0"},
      {"model.activation", choice(model.activation), "Activation inside the MLP"},
      {"model.bias", &model.bias,
       "Biases of all linear layers (never of the LM head) and of layernorm"},
      {"model.tie_embeddings", &model.tie_embeddings,
       "The LM head uses the weights of the token embedding"},
      {"model.dropout", &model.dropout,
       "Probability, of embeddings, attention and residual branches; 0 to below 1; 0: off"},

      {"data.train", &data.train,
       "Token files to train on, blended by weight "
       "([below](#entries-of-datatrain-and-datavalidation))",
       kRequired},
      {"data.validation", &data.validation,
       "Token files to evaluate on, read from beginning to end; may be empty"},
      {"data.format", choice(data.format),
       "Format of all these files ([data](data.md#formats-of-token-files))"},
      {"data.tokenizer", &data.tokenizer,
       "Tokenizer of the token ids: a file or folder ([data](data.md#tokenizers)); empty or bytes: "
       "one token per byte"},

      {"batch.sequence_length", &batch.sequence_length,
       "Tokens per sequence, up to `model.max_sequence_length`", "model.max_sequence_length"},
      {"batch.global_batch_size", &batch.global_batch_size,
       "Sequences per step over all ranks, a multiple of data ranks x `batch.micro_batch_size`"},
      {"batch.micro_batch_size", &batch.micro_batch_size,
       "Sequences that a rank computes at once; the rest is accumulated"},

      {"parallel.tensor", &parallel.tensor,
       "Ranks that share one model; it divides the ranks and `model.num_heads`; data ranks = ranks "
       "/ this"},
      {"parallel.sequence", &parallel.sequence,
       "Whether tensor ranks also share out the rows of norms, dropout and residuals, for less "
       "memory "
       "([scaling](scaling.md#sequence-parallelism))"},
      {"parallel.optimizer", choice(parallel.optimizer),
       "Where the optimizer's moments lie: replicated: all on every data rank; sharded: a share on "
       "each, which it updates ([scaling](scaling.md#sharded-optimizer))"},
      {"parallel.recompute", choice(parallel.recompute),
       "What the backward pass computes again, for less memory: attention: queries, keys, values "
       "and context; block: all of a block but its input ([scaling](scaling.md#recomputation))"},

      {"optimizer.learning_rate", &optimizer.learning_rate,
       "Peak learning rate of AdamW, at least 0"},
      {"optimizer.beta1", &optimizer.beta1, "Decay of the first moment, 0 to below 1"},
      {"optimizer.beta2", &optimizer.beta2, "Decay of the second moment, 0 to below 1"},
      {"optimizer.epsilon", &optimizer.epsilon, "Added to the root of the second moment, above 0"},
      {"optimizer.weight_decay", &optimizer.weight_decay,
       "Decoupled weight decay, at least 0; none on one-dimensional tensors"},
      {"optimizer.max_gradient_norm", &optimizer.max_gradient_norm,
       "Global norm that gradients are clipped to; 0: off"},

      {"schedule.kind", choice(schedule.kind),
       "Shape of the learning rate after the warm-up; wsd: warm-up, stable, decay"},
      {"schedule.warmup_steps", &schedule.warmup_steps, "Steps of the linear rise from 0; 0: none",
       "a tenth of schedule.decay_steps, at most 700"},
      {"schedule.decay_steps", &schedule.decay_steps,
       "Length of the whole schedule, in steps, at least 1", "train.steps"},
      {"schedule.min_ratio", &schedule.min_ratio,
       "Last learning rate / `optimizer.learning_rate`, 0 to 1"},

      {"train.steps", &train.steps, "Optimizer steps of the whole run, at least 1", kRequired},
      {"train.log_interval", &train.log_interval, "Steps between lines of the log, at least 1"},
      {"train.eval_interval", &train.eval_interval, "Steps between evaluations; 0: never",
       "250; 0 without data.validation"},
      {"train.eval_batches", &train.eval_batches,
       "Batches per evaluation; 0: the whole validation set, each token once"},

      {"checkpoint.interval", &checkpoint.interval,
       "Steps between checkpoints; 0: only at the end"},
      {"checkpoint.keep", &checkpoint.keep, "How many of the newest checkpoints are kept; 0: all"},
      {"checkpoint.keep_every", &checkpoint.keep_every,
       "Checkpoints at multiples of this many steps are also kept forever; 0: none"},
      {"checkpoint.resume", &checkpoint.resume,
       "auto: from the newest good checkpoint; none: start anew; or a checkpoint's directory"},
      {"checkpoint.initialize_from", &checkpoint.initialize_from,
       "Directory of weights to begin with, Redspine's or of `transformers`, with a new optimizer"},
      {"checkpoint.async", &checkpoint.async,
       "Write in the background, from a copy in host memory (12 bytes per parameter of the rank)"},
      {"checkpoint.verify", &checkpoint.verify,
       "Check every hash before a checkpoint is used; false: sizes and headers alone"},
  };
}

std::vector<Field> fields_of(DataFileConfig& file, const std::string& entry) {
  return {
      {entry + ".path", &file.path,
       "A token file, a Megatron prefix, or a glob of them, read in the order of names", kRequired},
      {entry + ".weight", &file.weight,
       "Share of the samples relative to the other entries, above 0; ignored in data.validation"},
  };
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
    // Its entries have fields of their own.
    std::string operator()(const FieldList& /*list*/) const { return ""; }
  };
  return std::visit(Writer{}, value);
}

}  // namespace redspine
