// CHECK: 'tile.yield' expects parent op to be one of 'tile.reduce', 'tile.scan'
func.func @yield(%x: f32) {
  tile.yield %x : f32
}
