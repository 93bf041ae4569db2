// x * sigmoid(x) * up becomes one op.
pdl.pattern @glu_pdl : benefit(2) {
  %x = operand
  %up = operand
  %t = type
  %sigmoid = operation "lathe.sigmoid"(%x : !pdl.value) -> (%t : !pdl.type)
  %s = result 0 of %sigmoid
  %active = operation "lathe.mul"(%x, %s : !pdl.value, !pdl.value) -> (%t : !pdl.type)
  %a = result 0 of %active
  apply_native_constraint "one_use"(%a : !pdl.value)
  %out = type
  %root = operation "lathe.mul"(%a, %up : !pdl.value, !pdl.value) -> (%out : !pdl.type)
  rewrite %root {
    %gate = operation "lathe.glu"(%x, %up : !pdl.value, !pdl.value)
    replace %root with %gate
  }
}
