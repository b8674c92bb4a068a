
// Four bytes share a register; without operands; with effects.

func.func @inline_asm(%x: tensor<8xi8>, %p: tensor<8x!tile.ptr<f32>>) {
  %a, %b = tile.inline_asm "mov.b32 $0, $2;" "=r,=r,=r,=r,=r,r" pack 4 pure (%x : tensor<8xi8>) to tensor<8xi8>, tensor<8xi32>
  %c = tile.inline_asm "mov.u32 $0, %smid;" "=r" pack 1 to i32
  %d = tile.inline_asm "ld.global.f32 $0, [$1];" "=f,l,~{memory}" pack 1 (%p : tensor<8x!tile.ptr<f32>>) to tensor<8xf32>
  func.return
}

// CHECK:      func.func @inline_asm(%x: tensor<8xi8>, %p: tensor<8x!tile.ptr<f32>>) {
// CHECK-NEXT:   %a, %b = tile.inline_asm "mov.b32 $0, $2;" "=r,=r,=r,=r,=r,r" pack 4 pure(%x : tensor<8xi8>) to tensor<8xi8>, tensor<8xi32>
// CHECK-NEXT:   %c = tile.inline_asm "mov.u32 $0, %smid;" "=r" pack 1 to i32
// CHECK-NEXT:   %d = tile.inline_asm "ld.global.f32 $0, [$1];" "=f,l,~{memory}" pack 1(%p : tensor<8x!tile.ptr<f32>>) to tensor<8xf32>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
