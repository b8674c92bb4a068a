// CHECK: tile.print: float16 is printed as another type
func.func @print(%x: f16) {
  tile.print "x" %x : f16
  func.return
}
