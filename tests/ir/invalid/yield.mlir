// CHECK: 'tile.yield' expects parent op 'tile.reduce'
func.func @yield(%x: f32) {
  tile.yield %x : f32
}
