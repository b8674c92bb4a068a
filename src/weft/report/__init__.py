"""Tables for the terminal and SVG pictures of what other packages compute.

Views only: a module here takes the data another package computed and draws it, so that the data can be had without the drawing
(``weft promote --json``) and the drawing without the command line.
"""
