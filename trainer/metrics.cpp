#include "trainer/metrics.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "data/io/folders.h"
#include "tensor/error.h"

namespace redspine {
namespace {

// fmt gives the shortest text of a number. JSON has no word for those that are not finite, and the
// sign of a NaN says nothing.
std::string number(double value) {
  if (std::isfinite(value)) return fmt::format("{}", value);
  return fmt::format("\"{}\"", std::isnan(value) ? std::abs(value) : value);
}

// In quotes, with the escapes of JSON.
std::string text(const std::string& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool stays(const nlohmann::json& line, const TrainConfig& config, std::int64_t last_step) {
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) {
    return false;
  }
  const auto step = line["step"].get<std::int64_t>();
  // The file may say anything by now; a value of another type is equal to none of these.
  const auto says = [&line](const char* key, const nlohmann::json& value) {
    return line.contains(key) && line[key] == value;
  };
  if (says("kind", "validation") && !config.is_evaluation_due(step)) return step < last_step;
  if (says("kind", "train") && !says("applied", false) && !config.is_log_due(step)) {
    return step < last_step;
  }
  return step <= last_step;
}

bool is_at_its_path(const File& file) {
  struct stat open_file = {};
  struct stat named_file = {};
  return ::fstat(file.descriptor(), &open_file) == 0 &&
         ::stat(file.path().c_str(), &named_file) == 0 && open_file.st_ino == named_file.st_ino &&
         open_file.st_dev == named_file.st_dev;
}

// The file without the lines that go, to be gone on with.
File go_on(const std::string& path, const TrainConfig& config, std::int64_t last_step) {
  std::ifstream file(path);
  std::string kept;
  std::int64_t num_dropped = 0;
  for (std::string line; std::getline(file, line);) {
    const bool is_whole = !file.eof();
    if (is_whole && stays(nlohmann::json::parse(line, nullptr, false), config, last_step)) {
      kept += line + '\n';
    } else {
      ++num_dropped;
    }
  }
  file.close();
  if (num_dropped > 0) replace_text(path, kept);
  return File::append(path);
}

}  // namespace

std::string training_line(const StepReport& report) {
  // What the device could do at best is not known here, so there is no utilisation ("mfu").
  return fmt::format(
      R"({{"kind":"train","step":{},"loss":{},"grad_norm":{},"learning_rate":{},"tokens":{},)"
      R"("samples":{},"batch_hash":"{:016x}","weights_digest":"{}","applied":{},"seconds":{},)"
      R"("tokens_per_second":{},"tflops_per_rank":{},"mfu":null}})",
      report.step, number(report.loss), number(report.gradient_norm), number(report.learning_rate),
      report.tokens, report.samples, report.batch_hash, report.weights_digest.text(),
      report.applied, number(report.seconds), number(report.tokens_per_second),
      number(report.tflops_per_rank));
}

MetricsLog::MetricsLog(const std::string& path, const TrainConfig& config,
                       std::optional<std::int64_t> resumed_step)
    : file_(resumed_step ? go_on(path, config, *resumed_step) : File::create(path)) {}

void MetricsLog::write(const StepReport& report) { write_line(training_line(report)); }

void MetricsLog::write(const ValidationReport& report) {
  write_line(fmt::format(R"({{"kind":"validation","step":{},"loss":{},"tokens":{}}})", report.step,
                         number(report.loss), report.tokens));
}

void MetricsLog::write_skipped_step(std::int64_t step) {
  write_line(fmt::format(R"({{"kind":"event","step":{},"event":"skipped_step"}})", step));
}

void MetricsLog::write(const SaveReport& report) {
  write_line(
      fmt::format(R"({{"kind":"checkpoint","step":{},"path":{},"stall_seconds":{},"bytes":{}}})",
                  report.step, text(report.path), number(report.stall_seconds), report.bytes));
}

void MetricsLog::write_resume(std::int64_t step, const std::string& directory) {
  write_line(fmt::format(R"({{"kind":"event","step":{},"event":"resume","from":{}}})", step,
                         text(directory)));
}

void MetricsLog::write_stop(std::int64_t step, const std::string& cause) {
  write_line(
      fmt::format(R"({{"kind":"event","step":{},"event":"stop","cause":{}}})", step, text(cause)));
}

void MetricsLog::sync() { file_.sync(); }

bool MetricsLog::is_lost() const { return !is_at_its_path(file_); }

void MetricsLog::restore() {
  if (!is_lost()) return;
  if (std::filesystem::exists(file_.path())) {
    throw Error(file_.path() +
                ": is another file by now, so that another job may be at work in its folder");
  }
  // As long as it is open it can be read.
  std::string all(static_cast<std::size_t>(file_.size()), '\0');
  file_.read_at(0, std::as_writable_bytes(std::span(all)));
  replace_text(file_.path(), all);
  file_ = File::append(file_.path());
}

void MetricsLog::write_line(const std::string& object) {
  const std::string line = object + '\n';
  file_.write(std::as_bytes(std::span(line)));
}

}  // namespace redspine
