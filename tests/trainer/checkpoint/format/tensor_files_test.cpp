#include "trainer/checkpoint/format/tensor_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/scratch.h"

namespace redspine {
namespace {

void write_file(const std::string& path, const std::vector<std::string>& names) {
  std::vector<SafetensorsTensor> tensors;
  tensors.reserve(names.size());
  for (const std::string& name : names) tensors.push_back({name, ElementType::f32, {1}});
  SafetensorsWriter writer(path, tensors);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value = static_cast<float>(i);
    writer.write(std::as_bytes(std::span(&value, 1)));
  }
  writer.finish();
}

TEST(TensorFiles, OpensOneFileOrThoseOfAnIndex) {
  const Scratch scratch;
  write_file(scratch / "model.safetensors", {"a", "b"});
  EXPECT_EQ(TensorFiles::open(scratch / "", "model").tensors().size(), 2U);
  write_file(scratch / "x.safetensors", {"a", "c"});
  write_file(scratch / "y.safetensors", {"d"});
  const std::string index = "model.safetensors.index.json";
  scratch.write(index, R"({"weight_map": {"a": "x.safetensors", "c": "x.safetensors",
                                          "d": "y.safetensors"}})");
  const TensorFiles files = TensorFiles::open(scratch / "", "model");
  EXPECT_EQ(files.tensors().size(), 3U);
  float value = -1.0F;
  files.read("c", 0, std::span(&value, 1));
  EXPECT_EQ(value, 1.0F);
  EXPECT_NE(config_error_of([&] { files.at("b"); }).find("tensor b: is not there"),
            std::string::npos);
}

TEST(TensorFiles, FilesThatDisagreeWithTheIndexAreRejected) {
  const Scratch scratch;
  write_file(scratch / "x.safetensors", {"a", "b"});
  write_file(scratch / "y.safetensors", {"a"});
  const auto error_with = [&](const std::string& map) {
    scratch.write("model.safetensors.index.json", "{\"weight_map\": " + map + "}");
    return config_error_of([&] { TensorFiles::open(scratch / "", "model"); });
  };
  const auto expect_part = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_part(error_with(R"({"a": "x.safetensors"})"), "tensor b: ");
  expect_part(error_with(R"({"a": "x.safetensors", "b": "x.safetensors", "c": "x.safetensors"})"),
              "tensor c: is not in x.safetensors");
  expect_part(error_with(R"({"a": "y.safetensors", "b": "x.safetensors"})"), "tensor a: ");
  expect_part(error_with(R"({"a": "z.safetensors"})"), "z.safetensors: cannot be opened");
  expect_part(error_with(R"({"a": "../x.safetensors"})"), "legal: a file of this directory");
  expect_part(error_with(R"({"a": 1})"), "is no file name");
  expect_part(error_with("[]"), "weight_map");
}

TEST(TensorFiles, NamesWithoutTheModelsNameAreUnderstood) {
  const Scratch scratch;
  write_file(scratch / "model.safetensors",
             {"wte.weight", "h.0.ln_1.bias", "h.0.attn.bias", "lm_head.weight"});
  TensorFiles files = TensorFiles::open(scratch / "", "model");
  files.adapt_to({"transformer.wte.weight", "transformer.h.0.ln_1.bias"});
  EXPECT_EQ(files.tensors().size(), 2U);
  float value = -1.0F;
  files.read("transformer.h.0.ln_1.bias", 0, std::span(&value, 1));
  EXPECT_EQ(value, 1.0F);
}

}  // namespace
}  // namespace redspine
