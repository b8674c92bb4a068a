// CHECK: tile.select: the condition is i1, expected tensor<4xi1>
func.func @select(%c: i1, %x: tensor<4xf32>) {
  %a = tile.select %c, %x, %x : i1, tensor<4xf32>
  func.return
}
