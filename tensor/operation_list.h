// Every operation of tensor/kernels.h by its name, once: the interface, the checks, each backend
// and each wrapper of a backend make their declarations from this list. An operation that is not
// in it cannot be run; one that is in it and lacks its check or a backend's kernel does not build.
#pragma once

#define REDSPINE_FOR_EACH_OPERATION(DO) \
  DO(Matmul)                            \
  DO(AddBias)                           \
  DO(Accumulate)                        \
  DO(MatmulGelu)                        \
  DO(MatmulGeluBackward)                \
  DO(WeightGradient)                    \
  DO(LayerNorm)                         \
  DO(AddLayerNorm)                      \
  DO(LayerNormBackward)                 \
  DO(RmsNorm)                           \
  DO(AddRmsNorm)                        \
  DO(RmsNormBackward)                   \
  DO(Rope)                              \
  DO(Dropout)                           \
  DO(Attention)                         \
  DO(AttentionBackward)                 \
  DO(CopyColumns)                       \
  DO(Swiglu)                            \
  DO(SwigluBackward)                    \
  DO(Embedding)                         \
  DO(EmbeddingBackward)                 \
  DO(RowMax)                            \
  DO(CrossEntropySums)                  \
  DO(CrossEntropyLoss)                  \
  DO(CrossEntropyBackward)              \
  DO(SumOfSquares)                      \
  DO(ExactSumOfSquares)                 \
  DO(AdamW)
