// The classes of a memory plan under their names.
#pragma once

#include "trainer/plan/memory_plan.h"

namespace redspine {

struct MemoryClass {
  const char* key;   // in JSON
  const char* name;  // for people
  std::int64_t MemoryPlan::*bytes;
};

inline constexpr MemoryClass kMemoryClasses[] = {
    {"parameters", "parameters", &MemoryPlan::parameters},
    {"gradients", "gradients", &MemoryPlan::gradients},
    {"optimizer", "optimizer", &MemoryPlan::optimizer},
    {"saved_activations", "saved activations", &MemoryPlan::saved},
    {"scratch", "scratch", &MemoryPlan::scratch},
    {"logits", "logits of a chunk", &MemoryPlan::logits},
    {"communication", "communication", &MemoryPlan::communication},
    {"spot_check", "spot check", &MemoryPlan::spot_check},
    {"library", "workspace of libraries", &MemoryPlan::library},
    {"snapshot", "copy for saving (host)", &MemoryPlan::snapshot},
};

}  // namespace redspine
