// The `redspine` binary as a shell starts it: words in, text and an exit code out. Local; one at a
// time, as jobs are.
#pragma once

#include <string>

#include "tests/support/scratch.h"

namespace redspine::testing {

struct Result {
  int exit_code;       // as a shell gives it; -1: it had to be killed at the time limit
  std::string output;  // standard output and error
};

/// In the folder that the test is in.
Result shell(const std::string& command);
Result redspine(const std::string& words);
/// `words` is what mpirun is given after the number of ranks and the program; further programs may
/// follow after colons.
Result on_ranks(int num_ranks, const std::string& words);

/// How often `part` is in `text`.
int count(const std::string& text, const std::string& part);

/// A folder of its own, removed at the end.
class Folder {
 public:
  std::string path(const std::string& name) const { return scratch_ / name; }
  /// Writes a file; DIR in `text` stands for this folder.
  void write(const std::string& name, std::string text) const;

 private:
  Scratch scratch_;
};

/// A folder with "text", its token files "tokens", and "run.yaml",
/// which trains the run "tiny" on them for two steps, into "runs".
class TinyRun : public Folder {
 public:
  TinyRun();

  /// run.yaml under another name, and `more` behind it.
  void write_config(const std::string& name, const std::string& more) const;
};

}  // namespace redspine::testing
