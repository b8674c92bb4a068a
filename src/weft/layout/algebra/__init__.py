"""The mathematics: bit matrices over F2, `LinearLayout`, and what can be computed from whole layouts.

Imports no other room. `f2` and `subspaces` are linear algebra on Python integers, and `fields` packs coordinates into one
index. `linear_layout` is the type, `text_form` its one-line spelling, `matrix_view` its printed matrix. `solving`, `division`
and `operations` compute with whole layouts.
"""
