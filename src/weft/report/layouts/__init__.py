"""Pictures of layouts: as SVG, as HTML with a pointer, and for the terminal.

    what                         SVG               HTML                        terminal
    a tensor as a grid           `grid_svg`        `grid_page`                 `grid_text`
    shared memory and an access  `banks_svg`       `svg_page` of it       `banks_text`
    a conversion's steps         `conversion_svg`                              `conversion_text`
    the matrix                   `matrix_svg`                                  `matrix_text`
    two layouts side by side     `compare_svg`     `compare_page`              `compare_text`

All stand alone: an SVG has its style, a page its script, neither loads anything. `notebook_html` is what `LinearLayout` shows in
notebooks.
"""

from weft.report.layouts.banks import Access, banks_svg
from weft.report.layouts.comparison import Comparison, compare_page, compare_svg, compare_text
from weft.report.layouts.conversion import conversion_svg
from weft.report.layouts.grid import grid_svg
from weft.report.layouts.held import Held
from weft.report.layouts.matrix import matrix_svg
from weft.report.layouts.page import grid_page, notebook_html, svg_page
from weft.report.layouts.stages import cost_text, stages
from weft.report.layouts.terminal import Page, banks_text, conversion_text, grid_text, matrix_text

__all__ = [
    "Access", "Comparison", "Held", "Page",
    "banks_svg", "banks_text", "compare_page", "compare_svg", "compare_text", "conversion_svg", "conversion_text", "cost_text",
    "grid_page", "grid_svg", "grid_text", "matrix_svg", "matrix_text", "notebook_html", "stages", "svg_page",
]  # fmt: skip
