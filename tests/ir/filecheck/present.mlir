// How many programs a call of a function runs together, on a CPU.

func.func @present() {
  %n = cpu.present
  func.return
}

// CHECK:      func.func @present() {
// CHECK-NEXT:   %n = cpu.present
