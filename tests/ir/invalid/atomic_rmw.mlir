// CHECK: tile.atomic_rmw: unknown kind 'nand', expected one of add, min, max, xchg, and, or, xor
func.func @atomic_rmw(%p: !tile.ptr<f32>, %v: f32) {
  %a = tile.atomic_rmw "nand" %p, %v : !tile.ptr<f32>, f32 to f32
  func.return
}

// -----

// CHECK: tile.atomic_rmw add does not take bool
func.func @atomic_rmw(%p: !tile.ptr<i1>, %v: i1) {
  %a = tile.atomic_rmw "add" %p, %v : !tile.ptr<i1>, i1 to i1
  func.return
}

// -----

// CHECK: tile.atomic_rmw: !tile.ptr<f32> holds f32, found f16
func.func @atomic_rmw(%p: !tile.ptr<f32>, %v: f16) {
  %a = tile.atomic_rmw "add" %p, %v : !tile.ptr<f32>, f16 to f16
  func.return
}

// -----

// CHECK: tile.atomic_rmw xor does not take float32
func.func @atomic_rmw(%p: !tile.ptr<f32>, %v: f32) {
  %a = tile.atomic_rmw "xor" %p, %v : !tile.ptr<f32>, f32 to f32
  func.return
}

// -----

// CHECK: tile.atomic_rmw: unknown order 'seq_cst', expected one of relaxed, acquire, release, acq_rel
func.func @atomic_rmw(%p: !tile.ptr<f32>, %v: f32) {
  %a = tile.atomic_rmw "add" %p, %v sem "seq_cst" : !tile.ptr<f32>, f32 to f32
  func.return
}

// -----

// CHECK: tile.atomic_rmw: unknown scope 'block', expected one of cta, gpu, sys
func.func @atomic_rmw(%p: !tile.ptr<f32>, %v: f32) {
  %a = tile.atomic_rmw "add" %p, %v scope "block" : !tile.ptr<f32>, f32 to f32
  func.return
}
