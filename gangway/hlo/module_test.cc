#include "gangway/hlo/module.h"

#include "gtest/gtest.h"

namespace gangway::hlo {
namespace {

Shape F32() { return Shape::Scalar(DType::kF32); }

TEST(ModuleTest, NamesAreUniqueAndSuffixed) {
  Module module("m");
  Computation* entry = module.AddComputation("main");
  Instruction* a = entry->Add(Opcode::kParameter, F32(), {}, ParameterAttr{0}, "x");
  Instruction* b = entry->Add(Opcode::kNegate, F32(), {a}, {}, "x");
  Instruction* c = entry->Add(Opcode::kNegate, F32(), {b}, {}, "x.1");
  EXPECT_EQ(a->name(), "x");
  EXPECT_EQ(b->name(), "x.1");
  EXPECT_EQ(c->name(), "x.2");
  EXPECT_NE(module.AddComputation("main")->name(), "main");
}

TEST(ModuleTest, ReplaceAllUsesKeepsTheReplacementsOwnUse) {
  Module module("m");
  Computation* entry = module.AddComputation("main");
  Instruction* x = entry->Add(Opcode::kParameter, F32(), {}, ParameterAttr{0});
  Instruction* twice = entry->Add(Opcode::kAdd, F32(), {x, x});
  Instruction* wrap = entry->Add(Opcode::kNegate, F32(), {x});
  entry->set_root(twice);
  x->ReplaceAllUsesWith(wrap);
  EXPECT_EQ(twice->operand(0), wrap);
  EXPECT_EQ(twice->operand(1), wrap);
  EXPECT_EQ(wrap->operand(0), x);
  EXPECT_EQ(x->users().size(), 1u);
  EXPECT_EQ(wrap->users().size(), 2u);
}

TEST(ModuleTest, ReorderGivesTheOrderAsked) {
  Module module("m");
  Computation* entry = module.AddComputation("main");
  Instruction* x = entry->Add(Opcode::kParameter, F32(), {}, ParameterAttr{0});
  Instruction* a = entry->Add(Opcode::kNegate, F32(), {x});
  Instruction* b = entry->Add(Opcode::kExponential, F32(), {x});
  entry->set_root(entry->Add(Opcode::kAdd, F32(), {a, b}));
  entry->Reorder({x, b, a, entry->root()});
  EXPECT_EQ(entry->instructions()[1].get(), b);
  EXPECT_EQ(entry->instructions()[2].get(), a);
  EXPECT_EQ(x->users().size(), 2u);
}

TEST(ModuleTest, RemoveDeadTakesChainsAndSparesSideEffects) {
  Module module("m");
  Computation* entry = module.AddComputation("main");
  Instruction* x = entry->Add(Opcode::kParameter, F32(), {}, ParameterAttr{0});
  Instruction* a = entry->Add(Opcode::kNegate, F32(), {x});
  entry->Add(Opcode::kNegate, F32(), {a});
  CustomCallAttr print;
  print.target = "print";
  print.has_side_effect = true;
  entry->Add(Opcode::kCustomCall, F32(), {x}, print);
  entry->set_root(x);
  EXPECT_EQ(entry->RemoveDead(), 2);
  EXPECT_EQ(entry->size(), 2);
}

TEST(ModuleTest, SortMovesOnlyWhatMust) {
  Module module("m");
  Computation* entry = module.AddComputation("main");
  Instruction* x = entry->Add(Opcode::kParameter, F32(), {}, ParameterAttr{0});
  Instruction* a = entry->Add(Opcode::kNegate, F32(), {x});
  Instruction* b = entry->Add(Opcode::kNegate, F32(), {x});
  Instruction* c = entry->Add(Opcode::kNegate, F32(), {b});
  a->ReplaceOperand(0, c);  // a now uses c, which comes later
  entry->set_root(a);
  entry->SortTopologically();
  std::vector<Instruction*> order;
  for (const auto& instruction : entry->instructions()) order.push_back(instruction.get());
  EXPECT_EQ(order, (std::vector<Instruction*>{x, b, c, a}));
}

TEST(ModuleTest, CloneIsDeepAndKeepsCallees) {
  Module module("m");
  Computation* add = module.AddComputation("add");
  Instruction* p = add->Add(Opcode::kParameter, F32(), {}, ParameterAttr{0});
  Instruction* q = add->Add(Opcode::kParameter, F32(), {}, ParameterAttr{1});
  add->set_root(add->Add(Opcode::kAdd, F32(), {p, q}));
  Computation* entry = module.AddComputation("main");
  Instruction* x = entry->Add(Opcode::kParameter, F32(), {}, ParameterAttr{0});
  Instruction* call = entry->Add(Opcode::kCall, F32(), {x, x});
  call->set_called({add});
  entry->set_root(call);
  module.set_entry(entry);
  auto clone = module.Clone();
  ASSERT_EQ(clone->entry()->root()->called().size(), 1u);
  EXPECT_NE(clone->entry()->root()->called()[0], add);
  EXPECT_EQ(clone->entry()->root()->called()[0]->name(), "add");
  EXPECT_EQ(clone->InstructionCount(), module.InstructionCount());
  module.AddComputation("unused");
  module.RemoveUnreachable();
  EXPECT_EQ(module.FindComputation("unused"), nullptr);
  EXPECT_EQ(module.PostOrder(), (std::vector<Computation*>{add, entry}));
}

TEST(OpcodeTest, TableIsConsistent) {
  EXPECT_EQ(AllOpcodes().size(), static_cast<size_t>(kOpcodeCount));
  for (const OpcodeInfo& info : AllOpcodes()) {
    EXPECT_EQ(InfoOf(info.opcode).name, info.name);
    EXPECT_EQ(ParseOpcode(info.name), info.opcode);
  }
}

}  // namespace
}  // namespace gangway::hlo
