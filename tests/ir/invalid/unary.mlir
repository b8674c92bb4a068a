// CHECK: tile.unary: unknown kind 'sinh', expected one of neg, not, abs, exp, exp2, log, log2, sqrt, sqrt_rn, rsqrt, sin, cos, tanh, erf, floor, ceil, cbrt, log10, log1p, tan
func.func @unary(%x: f32) {
  %a = tile.unary "sinh" %x : f32
  func.return
}

// -----

// CHECK: tile.unary exp does not take int32
func.func @unary(%x: tensor<4xi32>) {
  %a = tile.unary "exp" %x : tensor<4xi32>
  func.return
}

// -----

// CHECK: tile.unary abs does not take bool
func.func @unary(%x: i1) {
  %a = tile.unary "abs" %x : i1
  func.return
}

// -----

// CHECK: tile.unary not does not take float32
func.func @unary(%x: f32) {
  %a = tile.unary "not" %x : f32
  func.return
}

// -----

// CHECK: tile.unary neg does not take pointers
func.func @unary(%x: !tile.ptr<f32>) {
  %a = tile.unary "neg" %x : !tile.ptr<f32>
  func.return
}
