// CHECK: tile.addptr: the offset is tensor<4xi32> for pointers !tile.ptr<f32>
func.func @addptr(%p: !tile.ptr<f32>, %o: tensor<4xi32>) {
  %a = tile.addptr %p, %o : !tile.ptr<f32>, tensor<4xi32> to !tile.ptr<f32>
  func.return
}

// -----

// CHECK: tile.addptr: the offset is f32 for pointers !tile.ptr<f32>
func.func @addptr(%p: !tile.ptr<f32>, %o: f32) {
  %a = tile.addptr %p, %o : !tile.ptr<f32>, f32 to !tile.ptr<f32>
  func.return
}

// -----

// CHECK: tile.addptr: the offset is !tile.ptr<i32> for pointers !tile.ptr<f32>
func.func @addptr(%p: !tile.ptr<f32>, %o: !tile.ptr<i32>) {
  %a = tile.addptr %p, %o : !tile.ptr<f32>, !tile.ptr<i32> to !tile.ptr<f32>
  func.return
}

// -----

// CHECK: tile.addptr: expected pointers, found !tile.ptr<f32> to !tile.ptr<i32>
func.func @addptr(%p: !tile.ptr<f32>, %o: i32) {
  %a = tile.addptr %p, %o : !tile.ptr<f32>, i32 to !tile.ptr<i32>
  func.return
}

// -----

// CHECK: tile.addptr: expected pointers, found i64 to i64
func.func @addptr(%p: i64) {
  %a = tile.addptr %p, %p : i64, i64 to i64
  func.return
}
