// RUN: weft opt %s --pass narrow-integers
// A sum of products whose bits 8 to 15 are stored is computed in 16 bits. The other sum is stored whole, and stays.

func.func @f(%x: tensor<8xui8>, %y: tensor<8xi8>, %w: i32, %p: tensor<8x!tile.ptr<ui8>>, %q: tensor<8x!tile.ptr<i32>>) {
  %a = tile.cast %x : tensor<8xui8> to tensor<8xi32>
  %b = tile.cast %y : tensor<8xi8> to tensor<8xi32>
  %v = tile.splat %w : i32 to tensor<8xi32>
  %m = tile.binary "mul" %a, %v : tensor<8xi32>
  %s = tile.binary "add" %m, %b : tensor<8xi32>
  %eight = tile.constant 8 : tensor<8xi32>
  %t = tile.binary "shr" %s, %eight : tensor<8xi32>
  %r = tile.cast %t : tensor<8xi32> to tensor<8xui8>
  tile.store %p, %r : tensor<8x!tile.ptr<ui8>>, tensor<8xui8>
  %whole = tile.binary "add" %a, %b : tensor<8xi32>
  %end = tile.cast %whole : tensor<8xi32> to tensor<8xui8>
  tile.store %q, %whole : tensor<8x!tile.ptr<i32>>, tensor<8xi32>
  tile.store %p, %end : tensor<8x!tile.ptr<ui8>>, tensor<8xui8>
  func.return
}

// CHECK:      %[[A:.*]] = tile.cast %x : tensor<8xui8> to tensor<8xui16>
// CHECK:      %[[B:.*]] = tile.cast %y : tensor<8xi8> to tensor<8xui16>
// CHECK:      %[[W:.*]] = tile.cast %w : i32 to ui16
// CHECK-NEXT: %[[V:.*]] = tile.splat %[[W]] : ui16 to tensor<8xui16>
// CHECK-NEXT: %[[M:.*]] = tile.binary "mul" %[[A]], %[[V]] : tensor<8xui16>
// CHECK-NEXT: %[[S:.*]] = tile.binary "add" %[[M]], %[[B]] : tensor<8xui16>
// CHECK:      %[[E:.*]] = tile.constant 8 : tensor<8xui16>
// CHECK-NEXT: %[[T:.*]] = tile.binary "shr" %[[S]], %[[E]] : tensor<8xui16>
// CHECK-NEXT: %[[R:.*]] = tile.cast %[[T]] : tensor<8xui16> to tensor<8xui8>
// CHECK-NEXT: tile.store %p, %[[R]]
// CHECK-NEXT: %whole = tile.binary "add" %{{.*}}, %{{.*}} : tensor<8xi32>
// CHECK-NEXT: %end = tile.cast %whole : tensor<8xi32> to tensor<8xui8>
