"""Mutation testing: `mutation.sites` lists the mutants of a module, `mutation.run` tests each of them."""
