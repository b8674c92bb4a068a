// CHECK: tile.constant: 128 is out of range for int8
func.func @constant() {
  %a = tile.constant 128 : i8
  func.return
}

// -----

// CHECK: tile.constant: -1 is out of range for uint32
func.func @constant() {
  %a = tile.constant -1 : ui32
  func.return
}

// -----

// CHECK: tile.constant: 2 is out of range for bool
func.func @constant() {
  %a = tile.constant 2 : tensor<4xi1>
  func.return
}

// -----

// CHECK: tile.constant: 0.1 is not a value of float16; round it first
func.func @constant() {
  %a = tile.constant 0.1 : f16
  func.return
}

// -----

// CHECK: tile.constant: inf is not a value of float8_e4m3fn; round it first
func.func @constant() {
  %a = tile.constant inf : f8E4M3FN
  func.return
}

// -----

// CHECK: tile.constant: 1 is not a float
func.func @constant() {
  %a = "tile.constant"() <{value = #builtin.int<1>}> : () -> f32
  func.return
}

// -----

// CHECK: tile.constant: 1.0 is not an integer
func.func @constant() {
  %a = "tile.constant"() <{value = #builtin.float_data<1.0>}> : () -> i32
  func.return
}

// -----

// CHECK: tile.constant cannot make a pointer
func.func @constant() {
  %a = "tile.constant"() <{value = #builtin.int<1>}> : () -> !tile.ptr<i32>
  func.return
}

// -----

// CHECK: expected a number, inf, ninf or nan, found 'zero'
func.func @constant() {
  %a = tile.constant zero : i32
  func.return
}

// -----

// CHECK: index is not an element type of tile IR
func.func @constant() {
  %a = tile.constant 1 : index
  func.return
}
