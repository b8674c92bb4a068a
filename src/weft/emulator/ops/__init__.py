"""What each instruction does: a module per family, each filling `weft.emulator.ops.registry.TABLE`."""
