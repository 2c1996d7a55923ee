"""The drawings of ``graph``: one file for each format, all made from one ``Drawing``."""
