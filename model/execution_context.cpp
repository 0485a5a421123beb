#include "model/execution_context.h"

namespace redspine {

void drop(const ExecutionContext& execution, TensorView out_nD, ConstTensorView x_nD,
          const DropoutKey& dropout) {
  if (dropout.probability == 0.0F) {
    if (out_nD.raw() != x_nD.raw()) execution.device.copy(out_nD, x_nD);
    return;
  }
  if (execution.rows == nullptr) {
    ops::run(execution.device, Dropout{.out = out_nD, .x = x_nD, .dropout = dropout});
    return;
  }
  for (const RowPiece& piece : execution.rows->shares.pieces()) {
    const Shape shape{piece.num_samples, piece.num_positions, x_nD.cols()};
    DropoutKey of_piece = dropout;
    of_piece.samples_B = dropout.samples_B.slice(piece.first_sample, piece.num_samples);
    ops::run(execution.device,
             Dropout{.out = out_nD.slice(piece.first_row, piece.num_rows()).reshape(shape),
                     .x = x_nD.slice(piece.first_row, piece.num_rows()).reshape(shape),
                     .dropout = of_piece,
                     .first_position = piece.first_position});
  }
}

}  // namespace redspine
