"""The report: a folder with one self-contained page, its figures and tables as files, and an R script."""

from analysis.report.write import files_of, write_report
