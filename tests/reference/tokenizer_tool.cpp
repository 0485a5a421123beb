// Our tokenizer for the Python tests and benchmarks beside it: documents and ids as binary files.
//
//   tokenizer_tool encode TOKENIZER DOCUMENTS IDS [as_ids]
//   tokenizer_tool decode TOKENIZER IDS DOCUMENTS
//   tokenizer_tool time   TOKENIZER DOCUMENTS NUM_THREADS NUM_REPEATS
//   tokenizer_tool train  VOCAB_SIZE DOCUMENTS NUM_THREADS JSON
//
// The last two print a line each time: seconds on the clock, and seconds of all threads' CPU time.
//
// DOCUMENTS and IDS hold for each document its length as a u32 (of bytes, of ids), then that many
// bytes or i32. Little-endian.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "data/tokenizer/bpe_file.h"
#include "data/tokenizer/bpe_trainer.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/error.h"

namespace redspine {
namespace {

using Arguments = std::vector<std::string>;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The records of a file whose items have `item_size` bytes.
std::vector<std::string_view> records_of(std::string_view bytes, std::size_t item_size) {
  std::vector<std::string_view> records;
  while (!bytes.empty()) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    records.push_back(bytes.substr(sizeof(length), length * item_size));
    bytes.remove_prefix(sizeof(length) + length * item_size);
  }
  return records;
}

void write_record(std::ofstream& file, const void* items, std::size_t count,
                  std::size_t item_size) {
  const auto length = static_cast<std::uint32_t>(count);
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file.write(static_cast<const char*>(items), static_cast<std::streamsize>(count * item_size));
}

/// Calls function(document) for each document, on several threads.
template <typename Function>
void for_each(const std::vector<std::string_view>& documents, int num_threads, Function function) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < documents.size(); at = next++) function(documents[at]);
    });
  }
}

/// Calls function() and prints the seconds that it took.
template <typename Function>
void print_seconds_of(Function function) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  function();
  const std::clock_t cpu_end = std::clock();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{} {}\n", seconds.count(), static_cast<double>(cpu_end - cpu_start) / CLOCKS_PER_SEC);
}

void encode(const Arguments& arguments) {
  const bool as_ids = arguments.size() > 4 && arguments[4] == "as_ids";
  const auto tokenizer = load_tokenizer(arguments.at(1), "tokenizer",
                                        as_ids ? SpecialTokens::as_ids : SpecialTokens::as_text);
  const std::string bytes = read_all(arguments.at(2));
  std::ofstream output(arguments.at(3), std::ios::binary);
  std::vector<std::int32_t> tokens;
  for (const std::string_view document : records_of(bytes, 1)) {
    tokens.clear();
    tokenizer->encode(document, tokens);
    write_record(output, tokens.data(), tokens.size(), sizeof(std::int32_t));
  }
}

void decode(const Arguments& arguments) {
  const auto tokenizer = load_tokenizer(arguments.at(1), "tokenizer");
  const std::string bytes = read_all(arguments.at(2));
  std::ofstream output(arguments.at(3), std::ios::binary);
  for (const std::string_view record : records_of(bytes, sizeof(std::int32_t))) {
    std::vector<std::int32_t> tokens(record.size() / sizeof(std::int32_t));
    std::memcpy(tokens.data(), record.data(), record.size());
    const std::string text = tokenizer->decode(tokens);
    write_record(output, text.data(), text.size(), 1);
  }
}

void time_encoding(const Arguments& arguments) {
  const auto tokenizer = load_tokenizer(arguments.at(1), "tokenizer");
  const std::string bytes = read_all(arguments.at(2));
  const std::vector<std::string_view> documents = records_of(bytes, 1);
  for (int repeat = 0; repeat < std::stoi(arguments.at(4)); ++repeat) {
    print_seconds_of([&] {
      for_each(documents, std::stoi(arguments.at(3)), [&](std::string_view document) {
        std::vector<std::int32_t> tokens;
        tokenizer->encode(document, tokens);
      });
    });
  }
}

void train(const Arguments& arguments) {
  const std::string bytes = read_all(arguments.at(2));
  const std::vector<std::string_view> documents = records_of(bytes, 1);
  BpeModel model;
  print_seconds_of([&] {
    BpeTrainer trainer({.vocab_size = std::stoi(arguments.at(1))});
    for_each(documents, std::stoi(arguments.at(3)),
             [&](std::string_view document) { trainer.count(document); });
    model = trainer.train();
  });
  PartialFile file(arguments.at(4), "");
  save_tokenizer_json(model, file);
}

void run(const Arguments& arguments) {
  const std::string& command = arguments.at(0);
  if (command == "encode") {
    encode(arguments);
  } else if (command == "decode") {
    decode(arguments);
  } else if (command == "time") {
    time_encoding(arguments);
  } else if (command == "train") {
    train(arguments);
  } else {
    throw Error(command + ": is no command; legal: encode, decode, time, train");
  }
}

}  // namespace
}  // namespace redspine

int main(int argc, char** argv) {
  try {
    redspine::run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
