// CHECK: tile.atomic_cas: expected pointers, found i64
func.func @atomic_cas(%p: i64, %v: i64) {
  %a = tile.atomic_cas %p, %v, %v : i64, i64
  func.return
}

// -----

// CHECK: tile.atomic_cas: !tile.ptr<f32> holds f32, found i32
func.func @atomic_cas(%p: !tile.ptr<f32>, %v: i32) {
  %a = tile.atomic_cas %p, %v, %v : !tile.ptr<f32>, i32
  func.return
}

// -----

// CHECK: tile.atomic_cas does not take bool
func.func @atomic_cas(%p: !tile.ptr<i1>, %v: i1) {
  %a = tile.atomic_cas %p, %v, %v : !tile.ptr<i1>, i1
  func.return
}

// -----

// CHECK: tile.atomic_cas: unknown order 'strong', expected one of relaxed, acquire, release, acq_rel
func.func @atomic_cas(%p: !tile.ptr<i32>, %v: i32) {
  %a = tile.atomic_cas %p, %v, %v sem "strong" : !tile.ptr<i32>, i32
  func.return
}

// -----

// CHECK: tile.atomic_cas: unknown scope 'cluster', expected one of cta, gpu, sys
func.func @atomic_cas(%p: !tile.ptr<i32>, %v: i32) {
  %a = tile.atomic_cas %p, %v, %v scope "cluster" : !tile.ptr<i32>, i32
  func.return
}
