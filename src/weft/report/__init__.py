"""What weft knows, made readable: tables for the terminal, pictures as SVG.

Views only: a module here takes the data another package computed and draws it, so that the data can be had without the drawing
(``weft promote --json``) and the drawing without the command line.
"""
