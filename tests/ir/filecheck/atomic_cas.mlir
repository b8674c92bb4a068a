// One element and a tile, with an order and a scope.

func.func @atomic_cas(%s: !tile.ptr<i32>, %x: i32, %p: tensor<4x!tile.ptr<f32>>, %v: tensor<4xf32>) {
  %a = tile.atomic_cas %s, %x, %x : !tile.ptr<i32>, i32
  %b = tile.atomic_cas %p, %v, %v sem "release" scope "sys" : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
  func.return
}

// CHECK:      func.func @atomic_cas(%s: !tile.ptr<i32>, %x: i32, %p: tensor<4x!tile.ptr<f32>>, %v: tensor<4xf32>) {
// CHECK-NEXT:   %a = tile.atomic_cas %s, %x, %x : !tile.ptr<i32>, i32
// CHECK-NEXT:   %b = tile.atomic_cas %p, %v, %v sem "release" scope "sys" : tensor<4x!tile.ptr<f32>>, tensor<4xf32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
