# python/__main__.py: `python3 FOLDER NAME ...` is `python3 -m tandem NAME ...` of the package in this folder, whatever else is installed.
from tandem.__main__ import main

main()
