# python/tandem/_version.py: the version of the installed package.
from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("tandem")
except PackageNotFoundError:  # the sources, or the files that the command `tandem` brings
    __version__ = "unknown"
