// CHECK: tile.dot: shapes (2, 4) @ (2, 4) do not give (2, 2)
func.func @dot(%a: tensor<2x4xf32>, %c: tensor<2x2xf32>) {
  %r = tile.dot %a, %a, %c : tensor<2x4xf32>, tensor<2x4xf32> to tensor<2x2xf32>
  func.return
}

// -----

// CHECK: tile.dot: shapes () @ () do not give ()
func.func @dot(%a: f32) {
  %r = tile.dot %a, %a, %a : f32, f32 to f32
  func.return
}

// -----

// CHECK: tile.dot accumulates in float16, float32, float64 or int32, found bf16
func.func @dot(%a: tensor<2x2xbf16>) {
  %r = tile.dot %a, %a, %a : tensor<2x2xbf16>, tensor<2x2xbf16> to tensor<2x2xbf16>
  func.return
}

// -----

// CHECK: tile.dot accumulates in float16, float32, float64 or int32, found !tile.ptr<f32>
func.func @dot(%a: tensor<2x2x!tile.ptr<f32>>) {
  %r = tile.dot %a, %a, %a : tensor<2x2x!tile.ptr<f32>>, tensor<2x2x!tile.ptr<f32>> to tensor<2x2x!tile.ptr<f32>>
  func.return
}

// -----

// CHECK: tile.dot: f64 does not fit accumulators of float32
func.func @dot(%a: tensor<2x2xf64>, %c: tensor<2x2xf32>) {
  %r = tile.dot %a, %a, %c : tensor<2x2xf64>, tensor<2x2xf64> to tensor<2x2xf32>
  func.return
}

// -----

// CHECK: tile.dot: bf16 does not fit accumulators of float16
func.func @dot(%a: tensor<2x2xbf16>, %c: tensor<2x2xf16>) {
  %r = tile.dot %a, %a, %c : tensor<2x2xbf16>, tensor<2x2xbf16> to tensor<2x2xf16>
  func.return
}

// -----

// CHECK: tile.dot: i8 does not fit accumulators of float32
func.func @dot(%a: tensor<2x2xi8>, %c: tensor<2x2xf32>) {
  %r = tile.dot %a, %a, %c : tensor<2x2xi8>, tensor<2x2xi8> to tensor<2x2xf32>
  func.return
}

// -----

// CHECK: tile.dot: ui32 does not fit accumulators of int32
func.func @dot(%a: tensor<2x2xi8>, %b: tensor<2x2xui32>, %c: tensor<2x2xi32>) {
  %r = tile.dot %a, %b, %c : tensor<2x2xi8>, tensor<2x2xui32> to tensor<2x2xi32>
  func.return
}

// -----

// CHECK: tile.dot: !tile.ptr<f32> does not fit accumulators of float32
func.func @dot(%a: tensor<2x2x!tile.ptr<f32>>, %c: tensor<2x2xf32>) {
  %r = tile.dot %a, %a, %c : tensor<2x2x!tile.ptr<f32>>, tensor<2x2x!tile.ptr<f32>> to tensor<2x2xf32>
  func.return
}

// -----

// CHECK: tile.dot: unknown input_precision 'tf33'
func.func @dot(%a: tensor<2x2xf32>) {
  %r = tile.dot %a, %a, %a {input_precision = "tf33"} : tensor<2x2xf32>, tensor<2x2xf32> to tensor<2x2xf32>
  func.return
}

// -----

// CHECK: tile.dot: max_num_imprecise_acc is at least 0, found -1
func.func @dot(%a: tensor<2x2xf32>) {
  %r = tile.dot %a, %a, %a {max_num_imprecise_acc = -1 : i64} : tensor<2x2xf32>, tensor<2x2xf32> to tensor<2x2xf32>
  func.return
}
