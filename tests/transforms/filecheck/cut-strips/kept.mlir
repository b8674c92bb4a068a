// RUN: weft opt %s --pass "cut-strips{warps=1 disjoint=true registers=3 strip=2}"
// What stays in one piece though a load takes 4 registers of a thread.

// A strip would be loaded behind the store of another through the same array.
func.func @in_place(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %flat = tile.arange 0 128 : tensor<128xi32>
  %i = tile.reshape %flat : tensor<128xi32> to tensor<8x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %q = tile.addptr %os, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %v = tile.load %p : tensor<8x16x!tile.ptr<f32>> to tensor<8x16xf32>
  tile.store %p, %v : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xf32>
  func.return
}

// All of the load is stored twice; so it would be loaded twice.
func.func @used_elsewhere(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %flat = tile.arange 0 128 : tensor<128xi32>
  %i = tile.reshape %flat : tensor<128xi32> to tensor<8x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %q = tile.addptr %os, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %v = tile.load %p : tensor<8x16x!tile.ptr<f32>> to tensor<8x16xf32>
  tile.store %q, %v : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xf32>
  tile.store %q, %v : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xf32>
  func.return
}

// What is written in between may be what is loaded.
func.func @written_between(%c: f32, %x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %flat = tile.arange 0 128 : tensor<128xi32>
  %i = tile.reshape %flat : tensor<128xi32> to tensor<8x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %q = tile.addptr %os, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %v = tile.load %p : tensor<8x16x!tile.ptr<f32>> to tensor<8x16xf32>
  tile.store %x, %c : !tile.ptr<f32>, f32
  tile.store %q, %v : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xf32>
  func.return
}

// A volatile load is executed where it stands.
func.func @volatile(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %flat = tile.arange 0 128 : tensor<128xi32>
  %i = tile.reshape %flat : tensor<128xi32> to tensor<8x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %q = tile.addptr %os, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %v = tile.load %p volatile : tensor<8x16x!tile.ptr<f32>> to tensor<8x16xf32>
  tile.store %q, %v : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xf32>
  func.return
}

// A gather along the rows needs all of them.
func.func @along_rows(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %flat = tile.arange 0 128 : tensor<128xi32>
  %i = tile.reshape %flat : tensor<128xi32> to tensor<8x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %q = tile.addptr %os, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %v = tile.load %p : tensor<8x16x!tile.ptr<f32>> to tensor<8x16xf32>
  %n = tile.cast %v : tensor<8x16xf32> to tensor<8x16xi32>
  %g = tile.gather %v, %n axis 0 : tensor<8x16xf32>, tensor<8x16xi32> to tensor<8x16xf32>
  tile.store %q, %g : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xf32>
  func.return
}

// So do sums of columns.
func.func @sums(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %flat = tile.arange 0 128 : tensor<128xi32>
  %i = tile.reshape %flat : tensor<128xi32> to tensor<8x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %q = tile.addptr %os, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %v = tile.load %p : tensor<8x16x!tile.ptr<f32>> to tensor<8x16xf32>
  %s = tile.reduce %v axis 0 : tensor<8x16xf32> to tensor<16xf32> {
  ^bb0(%a: f32, %b: f32):
    %r = tile.binary "add" %a, %b : f32
    tile.yield %r : f32
  }
  %e = tile.expand_dims %s 0 : tensor<16xf32> to tensor<1x16xf32>
  %w = tile.broadcast %e : tensor<1x16xf32> to tensor<8x16xf32>
  %d = tile.binary "sub" %v, %w : tensor<8x16xf32>
  tile.store %q, %d : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xf32>
  func.return
}

// Rows of a transposed tile are columns of what is loaded.
func.func @turned(%x: !tile.ptr<f32>, %out: !tile.ptr<f32>) {
  %flat = tile.arange 0 128 : tensor<128xi32>
  %i = tile.reshape %flat : tensor<128xi32> to tensor<8x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %os = tile.splat %out : !tile.ptr<f32> to tensor<8x16x!tile.ptr<f32>>
  %q = tile.addptr %os, %i : tensor<8x16x!tile.ptr<f32>>, tensor<8x16xi32> to tensor<8x16x!tile.ptr<f32>>
  %v = tile.load %p : tensor<8x16x!tile.ptr<f32>> to tensor<8x16xf32>
  %t = tile.trans %v [1, 0] : tensor<8x16xf32> to tensor<16x8xf32>
  %u = tile.trans %q [1, 0] : tensor<8x16x!tile.ptr<f32>> to tensor<16x8x!tile.ptr<f32>>
  tile.store %u, %t : tensor<16x8x!tile.ptr<f32>>, tensor<16x8xf32>
  func.return
}

// CHECK-NOT: scf.for
