// CHECK: tile.inline_asm: pack is a power of two, found 3
func.func @inline_asm(%x: tensor<8xi32>) {
  %a = tile.inline_asm "mov.b32 $0, $1;" "=r,r" pack 3 (%x : tensor<8xi32>) to tensor<8xi32>
  func.return
}

// -----

// CHECK: tile.inline_asm: operands and results have different shapes
func.func @inline_asm(%x: tensor<8xi32>) {
  %a = tile.inline_asm "mov.b32 $0, $1;" "=r,r" pack 1 (%x : tensor<8xi32>) to tensor<4xi32>
  func.return
}

// -----

// CHECK: tile.inline_asm: the constraints name 1 registers for results, which have 2
func.func @inline_asm(%x: tensor<8xi32>) {
  %a = tile.inline_asm "mov.b32 $0, $1;" "=r,r,r" pack 2 (%x : tensor<8xi32>) to tensor<8xi32>
  func.return
}

// -----

// CHECK: tile.inline_asm: the constraints name 1 registers for operands, which have 2
func.func @inline_asm(%x: tensor<8xi64>) {
  %a = tile.inline_asm "mov.b32 $0, $1;" "=r,l,~{memory}" pack 2 (%x : tensor<8xi64>) to tensor<8xi16>
  func.return
}

// -----

// CHECK: tile.inline_asm has a result at least
func.func @inline_asm() {
  "tile.inline_asm"() <{text = "bar.sync 0;", constraints = "", pack = 1 : i64}> : () -> ()
  func.return
}

// -----

// CHECK: tile.inline_asm without operands gives scalars, found tensor<8xi32>
func.func @inline_asm() {
  %a = tile.inline_asm "mov.u32 $0, %laneid;" "=r" pack 1 to tensor<8xi32>
  func.return
}
