#include "tests/tensor/attention_reference.h"

#include <cmath>
#include <limits>

#include "tensor/philox.h"

namespace redspine {
namespace {

// Offsets of one head's row of K values in packed rows.
struct Offsets {
  const AttentionCase& c;
  std::int64_t b;
  std::int64_t head;

  std::int64_t kv_head() const {
    const HeadLayout& heads = c.heads;
    return (heads.first_query + head) / heads.queries_per_kv -
           heads.first_query / heads.queries_per_kv;
  }
  std::size_t row(std::int64_t t, std::int64_t place) const {
    return static_cast<std::size_t>((b * c.length + t) * c.qkv_size() + place * c.heads.head_size);
  }
  std::size_t query(std::int64_t t) const { return row(t, head); }
  std::size_t key(std::int64_t t) const { return row(t, c.heads.num_heads + kv_head()); }
  std::size_t value(std::int64_t t) const {
    return row(t, c.heads.num_heads + c.heads.num_kv_heads + kv_head());
  }
  std::size_t context(std::int64_t t) const {
    return static_cast<std::size_t>((b * c.length + t) * c.context_size() +
                                    head * c.heads.head_size);
  }
  std::size_t statistics(std::int64_t t) const {
    return static_cast<std::size_t>((b * c.heads.num_heads + head) * c.length + t);
  }
};

double dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(double* to, double factor, const double* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * x[i];
}

// The softmax of query t over the keys 0..t, and the log of its sum.
struct Probabilities {
  std::vector<double> p;
  double log_sum_exp;
};

Probabilities probabilities(const Offsets& at, const std::vector<double>& qkv, std::int64_t t) {
  const std::int64_t head_size = at.c.heads.head_size;
  std::vector<double> p(static_cast<std::size_t>(t) + 1);
  double max = -std::numeric_limits<double>::infinity();
  for (std::int64_t k = 0; k <= t; ++k) {
    double& score = p[static_cast<std::size_t>(k)];
    score = dot(&qkv[at.query(t)], &qkv[at.key(k)], head_size) /
            std::sqrt(static_cast<double>(head_size));
    max = std::max(max, score);
  }
  double sum = 0.0;
  for (double& score : p) sum += score = std::exp(score - max);
  for (double& score : p) score /= sum;
  return {p, max + std::log(sum)};
}

}  // namespace

double dropout_factor(const AttentionCase& c, std::int64_t row, std::int64_t head,
                      std::int64_t query, std::int64_t key) {
  const auto sample = static_cast<std::uint64_t>(c.samples[static_cast<std::size_t>(row)]);
  const auto global_head = static_cast<std::uint32_t>(c.heads.first_query + head);
  const PhiloxCounter bits =
      philox4x32(c.key, {static_cast<std::uint32_t>(key / 4), static_cast<std::uint32_t>(query),
                         static_cast<std::uint32_t>(sample),
                         global_head | static_cast<std::uint32_t>((sample >> 32) << 16)});
  const double probability = c.probability;
  const bool dropped = bits[static_cast<std::size_t>(key % 4)] < probability * 4294967296.0;
  return dropped ? 0.0 : 1.0 / (1.0 - probability);
}

AttentionResult reference_attention(const AttentionCase& c, const std::vector<double>& qkv) {
  AttentionResult result;
  result.context.resize(static_cast<std::size_t>(c.batch() * c.length * c.context_size()));
  result.log_sum_exp.resize(static_cast<std::size_t>(c.batch() * c.heads.num_heads * c.length));
  for (std::int64_t b = 0; b < c.batch(); ++b) {
    for (std::int64_t head = 0; head < c.heads.num_heads; ++head) {
      const Offsets at{c, b, head};
      for (std::int64_t t = 0; t < c.length; ++t) {
        const Probabilities row = probabilities(at, qkv, t);
        result.log_sum_exp[at.statistics(t)] = row.log_sum_exp;
        for (std::int64_t k = 0; k <= t; ++k) {
          add_scaled(&result.context[at.context(t)],
                     row.p[static_cast<std::size_t>(k)] * dropout_factor(c, b, head, t, k),
                     &qkv[at.value(k)], c.heads.head_size);
        }
      }
    }
  }
  return result;
}

std::vector<double> reference_attention_gradient(const AttentionCase& c,
                                                 const std::vector<double>& qkv,
                                                 const std::vector<double>& dcontext) {
  const std::int64_t head_size = c.heads.head_size;
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_size));
  std::vector<double> dqkv(qkv.size());
  for (std::int64_t b = 0; b < c.batch(); ++b) {
    for (std::int64_t head = 0; head < c.heads.num_heads; ++head) {
      const Offsets at{c, b, head};
      for (std::int64_t t = 0; t < c.length; ++t) {
        const std::vector<double> p = probabilities(at, qkv, t).p;
        std::vector<double> dp(p.size());
        double mean = 0.0;  // of dp under p: what the normalisation of the softmax takes off
        for (std::size_t k = 0; k < p.size(); ++k) {
          const auto key = static_cast<std::int64_t>(k);
          const double factor = dropout_factor(c, b, head, t, key);
          dp[k] = factor * dot(&dcontext[at.context(t)], &qkv[at.value(key)], head_size);
          mean += p[k] * dp[k];
          add_scaled(&dqkv[at.value(key)], p[k] * factor, &dcontext[at.context(t)], head_size);
        }
        for (std::size_t k = 0; k < p.size(); ++k) {
          const auto key = static_cast<std::int64_t>(k);
          const double dscore = p[k] * (dp[k] - mean) * scale;
          add_scaled(&dqkv[at.query(t)], dscore, &qkv[at.key(key)], head_size);
          add_scaled(&dqkv[at.key(key)], dscore, &qkv[at.query(t)], head_size);
        }
      }
    }
  }
  return dqkv;
}

}  // namespace redspine
