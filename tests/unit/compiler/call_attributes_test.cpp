// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/call_attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/ir/context.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

using mlir::OpBuilder;

class CallAttributesTest : public ::testing::Test {
 protected:
  KernelOp call(const CallAttributes& attributes) {
    OpBuilder b(context_.get());
    module_ = mlir::ModuleOp::create(b.getUnknownLoc());
    b.setInsertionPointToStart(module_->getBody());
    return KernelOp::create(b, b.getUnknownLoc(), mlir::TypeRange(), mlir::ValueRange(),
                            b.getStringAttr("family"), mlir::FlatSymbolRefAttr(),
                            b.getDictionaryAttr(attributes), mlir::DenseI64ArrayAttr());
  }
  template <class Config>
  Config roundTrip(const Config& config) {
    return configOf<Config>(call(attributesOf(OpBuilder(context_.get()), config)));
  }

  std::unique_ptr<mlir::MLIRContext> context_ = createContext();
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(CallAttributesTest, ConfigsComeBackAsTheyWereWritten) {
  const LinearConfig l = roundTrip(LinearConfig{Activation::gelu_tanh, true, false, true});
  EXPECT_EQ(l.activation, Activation::gelu_tanh);
  EXPECT_TRUE(l.bias);
  EXPECT_FALSE(l.residual);
  EXPECT_EQ(l.constantWeight, true);

  const ViewTerms view{3, DimExpr::symbol("s"), 4, DimExpr(2) * DimExpr::symbol("s"), 1};
  const AttentionConfig a = roundTrip(AttentionConfig{
      0.1, 30, 7, Causal::positions, MaskedRow::zero, true, {view, view, view, {0, 1, 1}}});
  EXPECT_EQ(a.scale, 0.1);
  EXPECT_EQ(a.softcap, 30);
  EXPECT_EQ(a.window, 7);
  EXPECT_EQ(a.causal, Causal::positions);
  EXPECT_EQ(a.maskedRow, MaskedRow::zero);
  EXPECT_TRUE(a.mask);
  ASSERT_EQ(a.views.size(), 4u);
  EXPECT_EQ(a.views[1], view);
  EXPECT_EQ(a.views[3], (ViewTerms{0, 1, 1}));

  const UpdateConfig u = roundTrip(UpdateConfig{2, view, 5});
  EXPECT_EQ(u.axis, 2);
  EXPECT_EQ(u.view, view);
  EXPECT_EQ(u.check, 5);
  const UpdateConfig plain = roundTrip(UpdateConfig{1});
  EXPECT_EQ(plain.view, std::nullopt);
  EXPECT_EQ(plain.check, std::nullopt);

  const ConvolutionConfig c = roundTrip(ConvolutionConfig{{2, 3}, {0, 1, 2, 3}});
  EXPECT_EQ(c.strides, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(c.padding, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(roundTrip(MatmulConfig{true}).transposeB);
  EXPECT_FALSE(roundTrip(PackConfig{false}).outIn);
  EXPECT_EQ(roundTrip(TopKConfig{9}).k, 9);
  EXPECT_EQ(roundTrip(GroupedLinearConfig{WeightLayout::packed}).layout, WeightLayout::packed);
  EXPECT_EQ(roundTrip(CumSumConfig{3}).axis, 3);
}

TEST_F(CallAttributesTest, AConfigOfAnotherPassIsRefusedByItsField) {
  OpBuilder b(context_.get());
  auto failure = [&](const CallAttributes& attributes) -> std::string {
    try {
      configOf<UpdateConfig>(call(attributes));
    } catch (const Error& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_THAT(failure({}),
              testing::HasSubstr("call of kind 'family': 'axis' of its config is missing"));
  EXPECT_THAT(failure({b.getNamedAttr("axis", b.getStringAttr("2"))}),
              testing::HasSubstr("'axis' of its config is of another kind"));
  for (mlir::Attribute view : {mlir::Attribute(b.getArrayAttr({b.getStringAttr("1")})),
                               mlir::Attribute(b.getStrArrayAttr({"1", "2"})),
                               mlir::Attribute(b.getStrArrayAttr({"1", "n*", "1"})),
                               mlir::Attribute(b.getI64IntegerAttr(1))}) {
    const std::string text =
        failure({b.getNamedAttr("axis", b.getI64IntegerAttr(2)), b.getNamedAttr("view", view)});
    if (view == b.getArrayAttr({b.getStringAttr("1")}))
      EXPECT_EQ(text, "none");
    else
      EXPECT_THAT(text, testing::HasSubstr("'view' of its config is of another kind"));
  }
  EXPECT_THROW(
      configOf<LinearConfig>(call({b.getNamedAttr("activation", b.getStringAttr("swish"))})),
      Error);
}

}  // namespace
}  // namespace lathe
