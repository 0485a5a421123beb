// The processes along one axis (or all of them), and the collectives on host memory that coordinate
// them. Everything but rank() and size() is collective (send and receive: over the two) and blocks;
// every rank calls it in the same order, from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace redspine {

enum class ReduceOp { sum, max };

class ProcessGroup {
 public:
  /// What identifies the group to MPI; known to parallel/ alone.
  struct Handle;

  explicit ProcessGroup(std::unique_ptr<Handle> handle);
  /// `rank` of `size` ranks that are only thought of, to plan what they will do without MPI. Its
  /// collectives answer as if all ranks had given what this one gives; messages throw Error.
  static ProcessGroup imagined(int rank, int size) { return {rank, size}; }
  bool is_imagined() const { return handle_ == nullptr; }
  ProcessGroup(ProcessGroup&&) noexcept;
  ~ProcessGroup();

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The machine of this rank. Local, also before MPI has begun.
  static std::string host_name();

  /// The same bits on every rank.
  void all_reduce(std::span<double> values, ReduceOp op) const;
  double all_reduce(double value, ReduceOp op) const;
  /// Sums modulo 2^64, exact in any order.
  std::uint64_t sum(std::uint64_t value) const;
  void sum(std::span<std::uint64_t> values) const;
  /// What every rank gave, by rank. Lengths may differ.
  std::vector<std::string> all_gather(const std::string& bytes) const;
  void barrier() const;
  /// From one rank to another, in the order of the calls; both give the same number of bytes.
  void send(std::span<const std::byte> bytes, int to) const;
  void receive(std::span<std::byte> bytes, int from) const;

  /// Messages among all ranks at once. Between two ranks they pair up in the order in which each
  /// has them here, and have equally many bytes.
  struct Outgoing {
    std::span<const std::byte> bytes;
    int to;
  };
  struct Incoming {
    std::span<std::byte> bytes;
    int from;
  };
  void exchange(std::span<const Outgoing> outgoing, std::span<const Incoming> incoming) const;

  /// The ranks that gave the same `color`, in the order of this group.
  ProcessGroup split(int color) const;

  /// Throws Error for a group that is only thought of.
  const Handle& handle() const;

 private:
  ProcessGroup(int rank, int size);

  std::unique_ptr<Handle> handle_;
  int rank_;
  int size_;
};

}  // namespace redspine
