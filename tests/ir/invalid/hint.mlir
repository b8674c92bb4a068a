// CHECK: tile.hint: divisibility is 2 positive numbers, found (16,)
func.func @hint(%x: tensor<2x4xi32>) {
  %a = tile.hint %x divisibility [16] : tensor<2x4xi32>
  func.return
}

// -----

// CHECK: tile.hint: constancy is 1 positive numbers, found (0,)
func.func @hint(%x: i32) {
  %a = tile.hint %x constancy [0] : i32
  func.return
}

// -----

// CHECK: tile.hint takes integers or pointers, found f32
func.func @hint(%x: f32) {
  %a = tile.hint %x contiguity [4] : f32
  func.return
}

// -----

// CHECK: tile.hint says nothing; it needs divisibility, contiguity or constancy
func.func @hint(%x: i32) {
  %a = tile.hint %x : i32
  func.return
}
