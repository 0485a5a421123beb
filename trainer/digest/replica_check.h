// Do ranks that hold the same have the same bits? Data ranks hold replicas of all of a model, and
// tensor ranks of what is not split. Compared by digests, in two small reductions: a bit that a
// faulty memory or processor has changed on one rank would else spread into all of them, or stay.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "parallel/group/process_group.h"
#include "trainer/digest/held_parts.h"

namespace redspine {

/// The ranks of a mesh. Borrowed.
struct ReplicaGroups {
  const ProcessGroup& world;
  const ProcessGroup& data;
  const ProcessGroup& tensor;
};

class ReplicaCheck {
 public:
  /// `store` and the groups outlive it; the same for `compares` on all ranks. Without it nothing is
  /// compared, and whole() gives the digest of this rank's replica.
  ReplicaCheck(const ReplicaGroups& groups, const ParameterStore& store,
               const std::vector<HeldPart>& parts, bool compares);

  /// The digest of the whole model (or of a moment of all its parameters) from the `digests` of
  /// this rank's parts. Collective over the world. Throws CollectiveError where replicas differ:
  /// with the first tensor, the ranks that have each digest, and those that most others contradict.
  /// `what` names the values ("step 7: the weights").
  Digest whole(std::span<const Digest> digests, const std::string& what) const;
  /// The same of what this rank updates, where the updates are shared out over the data axis (else
  /// of all that it holds): nobody else has those digests, so that tensor ranks alone are compared.
  Digest whole_of_updated(std::span<const Digest> digests, const std::string& what) const;

  const std::vector<HeldPart>& parts() const { return parts_; }

 private:
  enum class Scope { all, updated };  // which parts
  /// Digests that this rank counts, and of those of what several tensor ranks hold, what is too
  /// much if all have the same bits: nothing, once those of all of them are added up.
  struct Sums {
    Digest owned;
    Digest surplus;
  };
  Sums sums_of(std::span<const Digest> digests, Scope scope) const;
  [[noreturn]] void fail(std::span<const Digest> digests, const std::string& what,
                         Scope scope) const;

  ReplicaGroups groups_;
  const ParameterStore& store_;
  std::vector<HeldPart> parts_;
  bool compares_;
};

}  // namespace redspine
