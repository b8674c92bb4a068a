// RUN: weft opt %s --pass pipeline-loads{target=sm_86}
// Two tiles of 64 KiB are more than sm_86 has for a slot more than copies under way: the copy comes after the last use of its slot.

func.func @k(%p: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %n: i32) -> tensor<256x256xf32> {
  %c0 = tile.constant 0 : i32
  %c1 = tile.constant 16 : i32
  %zero = tile.constant 0.0 : tensor<256x256xf32>
  %i16 = tile.arange 0 128 : tensor<128xi32>
  %e = tile.expand_dims %i16 0 : tensor<128xi32> to tensor<1x128xi32>
  %at = tile.broadcast %e : tensor<1x128xi32> to tensor<256x128xi32>
  %ps = tile.splat %p : !tile.ptr<f16> to tensor<256x128x!tile.ptr<f16>>
  %q = tile.addptr %ps, %at : tensor<256x128x!tile.ptr<f16>>, tensor<256x128xi32> to tensor<256x128x!tile.ptr<f16>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x256xf32>) : i32 {
    %a = tile.load %q : tensor<256x128x!tile.ptr<f16>> to tensor<256x128xf16>
    %b = tile.trans %a [1, 0] : tensor<256x128xf16> to tensor<128x256xf16>
    %d = tile.dot %a, %b, %acc : tensor<256x128xf16>, tensor<128x256xf16> to tensor<256x256xf32>
    scf.yield %d : tensor<256x256xf32>
  } {tile.num_stages = 2 : i64}
  func.return %r : tensor<256x256xf32>
}

// CHECK:      [[BUF:%.*]] = gpu.alloc : !gpu.buffer<1 x tensor<256x128xf16>>
// CHECK:      gpu.async_copy
// CHECK-NEXT: gpu.commit
// CHECK:      scf.for {{.*}} iter_args(%acc = %zero, [[S:%.*]] = {{%.*}}, [[I:%.*]] = {{%.*}}, [[E:%.*]] = {{%.*}})
// CHECK-NEXT: gpu.wait 0 : [[BUF]]
// CHECK-NEXT: %a = gpu.local_load [[BUF]][[[S]]]
// CHECK-NEXT: gpu.async_copy %q to [[BUF]][[[S]]] if [[E]]
// CHECK-NEXT: gpu.commit
